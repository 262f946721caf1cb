#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <optional>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// Options for `DistributedSampler`, with the same names, order, and defaults as in Python.
struct DistributedSamplerOptions {
  std::optional<int> num_replicas = {};  ///< defaults to the size of the group
  std::optional<int> rank = {};          ///< defaults to the rank in the group
  bool shuffle = true;                   ///< whether to shuffle the rows
  uint64_t seed = 0;                     ///< seed of the order; must be the same on every rank
  bool drop_last = false;  ///< whether to drop leftover rows; otherwise, some rows repeat
};

/// Selects the dataset rows that a single rank trains on. All ranks use the same row order. Each
/// rank receives every `num_replicas`-th row, and all ranks receive the same number of rows. The
/// order depends on the seed and the epoch, and no global generator is used. To split the rows
/// into batches, use `Batches(dataset, {.batch_size = 64, .sampler = sampler})`. In your own loop,
/// call `Batches::set_epoch` before each epoch. The Trainer's `fit` calls `set_epoch` for you.
/// Python: `torch.utils.data.distributed.DistributedSampler`.
class DistributedSampler {
 public:
  /// Uses the rank and size of `group`, which may be a `distributed::ProcessGroup` or any other
  /// type with `rank()` and `world_size()` functions.
  /// @throw c10::Error if `dataset_size` is negative, `num_replicas` is below 1, or `rank` is not
  /// in [0, num_replicas).
  template <class Group>
    requires requires(const Group& group) {
      { group.rank() } -> std::convertible_to<int>;
      { group.world_size() } -> std::convertible_to<int>;
    }
  DistributedSampler(int64_t dataset_size, const Group& group,
                     DistributedSamplerOptions options = {})
      : DistributedSampler(dataset_size, options.num_replicas.value_or(group.world_size()),
                           options.rank.value_or(group.rank()), options) {}

  /// Sets the epoch that the next call to `indices()` uses. The default is 0. Python:
  /// `set_epoch(epoch)`.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of rows in the whole dataset. Python: `len(sampler.dataset)`.
  int64_t dataset_size() const { return dataset_size_; }

  /// Returns the number of rows per epoch, which is the same on every rank. Python: `len(sampler)`.
  int64_t size() const;

  /// Returns the epoch that the next call to `indices()` uses.
  int64_t epoch() const { return epoch_; }

  /// Returns whether a loader's epoch is advanced only by `set_epoch`, and never by `begin()`.
  /// Returns true if `shuffle` is set, so that an extra call to `begin()` on one rank cannot change
  /// the order on that rank only. In Python, a `DataLoader` with a `DistributedSampler` also
  /// advances the epoch only through `set_epoch`.
  bool requires_set_epoch() const { return options_.shuffle; }

  /// Returns the rows of the current epoch as an int64 tensor of shape `(size(),)` on the CPU.
  /// Python: `list(sampler)`.
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
