#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "sconce/fwd.hpp"

namespace sconce::distributed {
class ProcessGroup;
}  // namespace sconce::distributed

namespace sconce::data {

/// The arguments of `torch.utils.data.distributed.DistributedSampler`, with Python's names and
/// defaults.
struct DistributedSamplerOptions {
  bool shuffle = true;     ///< rows in a random order, which all ranks cut alike
  uint64_t seed = 0;       ///< with the epoch, what the order depends on; the same on every rank
  bool drop_last = false;  ///< leaves out the rows that do not divide, where else some come twice
  std::optional<int> num_replicas = {};  ///< none: the group's size
  std::optional<int> rank = {};          ///< none: the group's rank
};

/// Chooses the rows of a data set that one rank trains on: of the order that all ranks share, each
/// takes every num_replicas-th, as many as the others. Touches no random generator.
/// `Batches(dataset, sampler, {.batch_size = 64})` cuts them into batches.
/// Python: `torch.utils.data.distributed.DistributedSampler`.
class DistributedSampler {
 public:
  /// @throw c10::Error if the data set's size is negative, num_replicas below 1, or rank not in 0
  /// to num_replicas - 1.
  DistributedSampler(int64_t dataset_size, const distributed::ProcessGroup& group,
                     DistributedSamplerOptions options = {});

  /// Chooses the order of the next `indices()`; 0 without a call. Python: `set_epoch(epoch)`.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// The number of rows of the whole data set. Python: `len(sampler.dataset)`.
  int64_t dataset_size() const { return dataset_size_; }

  /// The number of rows, the same on every rank. Python: `len(sampler)`.
  int64_t size() const;

  /// The rows of this epoch: int64 `(size(),)` on the CPU. Python: `list(sampler)`.
  torch::Tensor indices() const;

 private:
  int64_t dataset_size_;
  int num_replicas_;
  int rank_;
  DistributedSamplerOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace sconce::data
