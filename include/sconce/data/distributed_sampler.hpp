#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <optional>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// The arguments of `torch.utils.data.distributed.DistributedSampler`, with Python's names, order
/// and defaults.
struct DistributedSamplerOptions {
  std::optional<int> num_replicas = {};  ///< none: the size of the group
  std::optional<int> rank = {};          ///< none: the rank in the group
  bool shuffle = true;                   ///< whether to take the rows in a random order
  uint64_t seed = 0;                     ///< seed of the order; must be the same on every rank
  bool drop_last = false;  ///< whether to drop rows that cannot be divided evenly; else some repeat
};

/// Chooses the rows of a dataset that one rank trains on. All ranks share one order of the rows,
/// and each rank takes every num_replicas-th row of it, so all ranks get the same number of rows.
/// The order depends on the seed and the epoch; no global generator is used.
/// `Batches(dataset, {.batch_size = 64, .sampler = sampler})` makes batches of the rows. Call
/// `set_epoch` of the batches before each epoch of a loop of your own; a fit of the Trainer does it
/// by itself. Python: `torch.utils.data.distributed.DistributedSampler`.
class DistributedSampler {
 public:
  /// Takes rank and size from the group: a `distributed::ProcessGroup`, or any type that has them.
  /// @throw c10::Error if `dataset_size` is negative, num_replicas is below 1, or rank is not in 0
  /// to num_replicas - 1.
  template <class Group>
    requires requires(const Group& group) {
      { group.rank() } -> std::convertible_to<int>;
      { group.world_size() } -> std::convertible_to<int>;
    }
  DistributedSampler(int64_t dataset_size, const Group& group,
                     DistributedSamplerOptions options = {})
      : DistributedSampler(dataset_size, options.num_replicas.value_or(group.world_size()),
                           options.rank.value_or(group.rank()), options) {}

  /// Sets the epoch of the next `indices()`, 0 without a call. Python: `set_epoch(epoch)`.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of rows of the whole dataset. Python: `len(sampler.dataset)`.
  int64_t dataset_size() const { return dataset_size_; }

  /// Returns the number of rows per epoch, the same on every rank. Python: `len(sampler)`.
  int64_t size() const;

  /// Returns the epoch of the next `indices()`.
  int64_t epoch() const { return epoch_; }

  /// Returns whether only `set_epoch` moves the epoch of a loader, and not its `begin()`. This is
  /// so with `shuffle`, because a loop of one rank alone would give this rank another order than
  /// the others have. Python: the same, for a `DataLoader` with this sampler.
  bool requires_set_epoch() const { return options_.shuffle; }

  /// Returns the rows of this epoch: int64 `(size(),)` on the CPU. Python: `list(sampler)`.
  torch::Tensor indices() const;

 private:
  DistributedSampler(int64_t dataset_size, int num_replicas, int rank,
                     const DistributedSamplerOptions& options);

  int64_t dataset_size_;
  int num_replicas_;
  int rank_;
  DistributedSamplerOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace sconce::data
