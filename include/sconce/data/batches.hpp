#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "sconce/data/dataset.hpp"
#include "sconce/data/sampler.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data {

/// How `Batches` cuts a data set; the defaults are those of `torch.utils.data.DataLoader`.
struct BatchesOptions {
  /// Rows a batch, 1 or more; the last batch of an epoch may be shorter.
  int64_t batch_size = 1;

  /// Takes the rows in a random order, another one after each `set_epoch`, not in their own.
  bool shuffle = false;

  /// Leaves out the last batch of an epoch when it is shorter than `batch_size`.
  bool drop_last = false;

  /// With the epoch, what the random order depends on: the same two give the same order.
  uint64_t seed = 0;
};

/// Cuts a data set into batches for a range-for, on whatever device its tensors are:
/// `for (auto [data, target] : batches)`. Each batch is a `Dataset`, (batch_size, ...) both.
///
/// Without `shuffle` or a sampler a batch is a view of the data set's memory; else a copy of its
/// rows made on their device. With `shuffle` the order is `torch.randperm(n)` of a CPU generator
/// seeded with seed + epoch, so it is the same on every device, equals Python's, and no other
/// generator is touched. Python: `torch.utils.data.DataLoader` over a `DistributedSampler` of one
/// replica.
class Batches {
 public:
  class Iterator;

  /// Holds the two tensors without copying them; a data set of no rows gives no batches.
  /// @throw c10::Error if a tensor is undefined or has no first dimension, if the two differ in
  /// their first dimension or device, or if `batch_size` is below 1.
  explicit Batches(Dataset dataset, BatchesOptions options = {});

  /// The batches of the rows that the sampler, of which it keeps a copy, chooses, in its order. Of
  /// a `DistributedSampler` every rank has as many. Python: `DataLoader(dataset, sampler=sampler)`.
  /// @throw c10::Error as above, if the sampler is for another number of rows, or with `shuffle`.
  template <Sampler S>
  Batches(Dataset dataset, const S& sampler, BatchesOptions options = {})
      : Batches(AnySampler(sampler), std::move(dataset), options) {}

  /// Chooses the order of the next `begin()`; a loop that runs keeps its own. The epoch is 0, or
  /// the sampler's, without a call. Python: `DistributedSampler.set_epoch(epoch)`.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of batches in an epoch. Python: `len(loader)`.
  int64_t size() const;

  /// Returns the data set that the batches come from. Python: `loader.dataset`.
  const Dataset& dataset() const { return dataset_; }

  /// Starts an epoch, at its batch of that index: with `shuffle` or a sampler it draws the order,
  /// once, and moves it to the data's device. Python: `iter(loader)`.
  Iterator begin(int64_t batch = 0) const;

  /// Returns what an iterator equals when its epoch is over.
  std::default_sentinel_t end() const { return {}; }

 private:
  Batches(AnySampler sampler, Dataset dataset, BatchesOptions options);

  Dataset dataset_;
  BatchesOptions options_;
  AnySampler sampler_ = {};  // none: the rows as they lie
  int64_t rows_ = 0;         // of an epoch
  std::optional<int64_t> epoch_ = {};
};

/// The place of one loop in its epoch: a C++20 input iterator, good for as long as its `Batches`.
class Batches::Iterator {
 public:
  using value_type = Dataset;
  using difference_type = std::ptrdiff_t;

  /// Makes the batch; two calls at one place make it twice.
  Dataset operator*() const;

  /// Goes to the next batch, which costs nothing before it is read.
  Iterator& operator++();

  /// As above; an input iterator has no earlier place to give back.
  void operator++(int) { ++*this; }

  /// Whether the epoch is over.
  bool operator==(std::default_sentinel_t) const { return index_ == batches_->size(); }

 private:
  friend class Batches;
  Iterator(const Batches& batches, torch::Tensor order, int64_t index);

  const Batches* batches_;
  torch::Tensor order_;  // undefined where the rows come in their own
  int64_t index_;
};

}  // namespace sconce::data
