#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "sconce/data/dataset.hpp"
#include "sconce/data/detail/epoch_count.hpp"
#include "sconce/data/sampler.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data {

/// Options of `Batches`. The defaults are those of `torch.utils.data.DataLoader`.
struct BatchesOptions {
  /// Number of rows per batch, at least 1. The last batch of an epoch may be shorter.
  int64_t batch_size = 1;

  /// Whether to take the rows in a random order, a new one in each epoch.
  bool shuffle = false;

  /// Whether to drop the last batch of an epoch if it is shorter than `batch_size`.
  bool drop_last = false;

  /// Seed of the random order. The same seed and epoch give the same order.
  uint64_t seed = 0;
};

/// Splits a data set on any device into batches for a range-for:
/// `for (auto [data, target] : batches)`. Each batch is a `Dataset` with two tensors
/// `(batch_size, ...)`.
///
/// Without `shuffle` or a sampler, a batch is a view of the memory of the data set. Otherwise it is
/// a copy of its rows, made on their device. With `shuffle` the order is `torch.randperm(n)` of a
/// CPU generator seeded with seed + epoch. So the order is the same on every device and in Python,
/// and no other generator is used. Python: `torch.utils.data.DataLoader` over a
/// `DistributedSampler` of one replica.
class Batches {
 public:
  class Iterator;

  /// Keeps the two tensors without copying them. A data set without rows gives no batches.
  /// @throw c10::Error if:
  /// - a tensor is undefined or has no first dimension;
  /// - the two differ in their first dimension or device;
  /// - `batch_size` is below 1.
  explicit Batches(Dataset dataset, BatchesOptions options = {});

  /// Makes batches of the rows that the sampler chooses, in its order. Keeps a copy of the sampler.
  /// With a `DistributedSampler` all ranks have the same number of batches. Python:
  /// `DataLoader(dataset, sampler=sampler)`.
  /// @throw c10::Error under the same conditions as above, if the sampler is for a different number
  /// of rows, or if `shuffle` is set.
  template <Sampler S>
  Batches(Dataset dataset, const S& sampler, BatchesOptions options = {})
      : Batches(AnySampler(sampler), std::move(dataset), options) {}

  /// Sets the epoch of the next `begin()`, also in the copies of this object. A running loop keeps
  /// its order. Python: `DistributedSampler.set_epoch(epoch)`.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of batches in an epoch. Python: `len(loader)`.
  int64_t size() const;

  /// Returns the data set that the batches come from. Python: `loader.dataset`.
  const Dataset& dataset() const { return dataset_; }

  /// Starts the next epoch: 0, 1, 2 and so on, counted over all copies of this object, or from that
  /// of `set_epoch` or of the sampler on. Several threads may call it at once, and each gets an
  /// epoch of its own. With `shuffle` or a sampler it draws the order once and moves it to the
  /// device of the data. **With a `DistributedSampler` only `set_epoch` moves the epoch**; a second
  /// `begin()` without it warns, once. The iterator points to this object. Python: `iter(loader)`.
  Iterator begin() const&;
  Iterator begin() const&& = delete;

  /// Starts this epoch at the batch with this index, and leaves the epoch of the next `begin()`
  /// alone: to resume a loop, or to look at a batch.
  /// @throw c10::Error if `batch` is not in 0 to size(), or `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const&;
  Iterator begin(int64_t batch, int64_t epoch) const&& = delete;

  /// Returns the sentinel that an iterator equals at the end of its epoch.
  std::default_sentinel_t end() const { return {}; }

 private:
  Batches(AnySampler sampler, Dataset dataset, BatchesOptions options);

  Dataset dataset_;
  BatchesOptions options_;
  AnySampler sampler_ = {};  // none: the rows in their own order
  int64_t rows_ = 0;         // rows in an epoch
  detail::EpochCount epochs_ = detail::EpochCount("sconce::data::Batches");
};

/// Position of one loop in its epoch: a C++20 input iterator, valid as long as its `Batches`.
class Batches::Iterator {
 public:
  using value_type = Dataset;
  using difference_type = std::ptrdiff_t;

  /// Returns the batch. Each call makes the batch again.
  Dataset operator*() const;

  /// Goes to the next batch, which is not made until it is read.
  Iterator& operator++();

  /// Goes to the next batch; returns nothing, because an input iterator cannot go back.
  void operator++(int) { ++*this; }

  /// Returns the epoch of this loop.
  int64_t epoch() const { return epoch_; }

  /// Returns whether the epoch is over.
  bool operator==(std::default_sentinel_t) const { return index_ == batches_->size(); }

 private:
  friend class Batches;
  Iterator(const Batches& batches, int64_t index, int64_t epoch);

  const Batches* batches_;
  torch::Tensor order_;  // undefined if the rows are in their own order
  int64_t index_;
  int64_t epoch_;
};

}  // namespace sconce::data
