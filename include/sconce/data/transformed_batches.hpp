#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "sconce/data/detail/begin_at.hpp"
#include "sconce/data/detail/epoch_count.hpp"
#include "sconce/data/seed.hpp"

namespace sconce::data {

/// The options of `TransformedBatches`.
struct TransformedBatchesOptions {
  uint64_t seed = 0;  ///< seed of the generators, together with epoch and batch index
};

/// Applies a function to each batch of a source, such as `Batches`:
/// `TransformedBatches train(batches, [](Dataset batch, const at::Generator& generator) { ... });`
/// The result is again a source, which the Trainer accepts.
///
/// The function takes the batch, or the batch and a CPU `at::Generator`. The generator is seeded
/// for each batch by `mix_seeds(seed, epoch, index)`, so a batch is the same wherever a loop
/// begins. The function is called when a batch is read, in the reading thread. Python: `map` over a
/// DataLoader.
template <class Source, class Function>
class TransformedBatches {
  using SourceIterator = decltype(std::declval<const Source&>().begin());
  using SourceBatch = decltype(*std::declval<const SourceIterator&>());
  static constexpr bool takes_generator =
      std::invocable<const Function&, SourceBatch, const at::Generator&>;
  static_assert(takes_generator || std::invocable<const Function&, SourceBatch>,
                "sconce::data::TransformedBatches: expected a function, callable when const, of "
                "the source's batch, or of it and an at::Generator");

 public:
  class Iterator;

  /// Takes the source and the function.
  TransformedBatches(Source source, Function function, TransformedBatchesOptions options = {})
      : source_(std::move(source)), function_(std::move(function)), options_(options) {}

  /// Returns the number of batches in an epoch, which is that of the source.
  int64_t size() const { return source_.size(); }

  /// Sets the epoch of the next `begin()`, also in the source if it has epochs and in the copies of
  /// this object. A running loop keeps its own.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch) {
    epochs_.set(epoch);
    if constexpr (requires { source_.set_epoch(epoch); }) source_.set_epoch(epoch);
  }

  /// Starts the next epoch by `begin()` of the source. The generators are of the epoch that the
  /// source's iterator has, as that of `Batches` and `Loader` has one. For another source they are
  /// of epoch 0, 1, 2 and so on, counted over all copies of this object. The iterator points to
  /// this object.
  Iterator begin() const& {
    detail::SourcePlace<Source> place{nullptr, source_.begin()};
    const int64_t epoch = epoch_of(place.iterator);
    return Iterator(*this, std::move(place), 0, epoch);
  }
  Iterator begin() const&& = delete;

  /// Starts this epoch at the batch with this index, and leaves the epoch of the next `begin()`
  /// alone. A source that has `set_epoch` and no `begin(batch, epoch)` is copied for it.
  /// @throw c10::Error if `epoch` is negative, and what the source throws.
  Iterator begin(int64_t batch, int64_t epoch) const& {
    return Iterator(*this, detail::begin_at(source_, batch, epochs_.named(epoch)), batch, epoch);
  }
  Iterator begin(int64_t batch, int64_t epoch) const&& = delete;

  /// Returns the sentinel that an iterator equals at the end of its epoch.
  std::default_sentinel_t end() const { return {}; }

 private:
  int64_t epoch_of(const SourceIterator& place) const {
    if constexpr (requires { place.epoch(); }) {
      return place.epoch();
    } else {
      return epochs_.take();
    }
  }

  auto batch(const SourceIterator& place, int64_t index, int64_t epoch) const {
    if constexpr (takes_generator) {
      const auto seed =
          mix_seeds(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
      return function_(*place, at::make_generator<at::CPUGeneratorImpl>(seed));
    } else {
      return function_(*place);
    }
  }

  Source source_;
  Function function_;
  TransformedBatchesOptions options_;
  detail::EpochCount epochs_ = detail::EpochCount("sconce::data::TransformedBatches");
};

/// Position of one loop in its epoch: an input iterator, valid as long as its `TransformedBatches`.
template <class Source, class Function>
class TransformedBatches<Source, Function>::Iterator {
 public:
  using value_type = decltype(std::declval<const TransformedBatches&>().batch(
      std::declval<const SourceIterator&>(), 0, 0));
  using difference_type = std::ptrdiff_t;

  /// Reads the batch of the source and calls the function. Each call does both again.
  value_type operator*() const { return batches_->batch(place_.iterator, index_, epoch_); }

  /// Goes to the next batch.
  Iterator& operator++() {
    ++place_.iterator;
    ++index_;
    return *this;
  }

  /// Goes to the next batch; returns nothing, because an input iterator cannot go back.
  void operator++(int) { ++*this; }

  /// Returns the epoch of this loop.
  int64_t epoch() const { return epoch_; }

  /// Returns the item of the exception that this loop got, as the source's iterator does.
  std::optional<int64_t> failed_item() const
    requires requires(const SourceIterator& place) { place.failed_item(); }
  {
    return place_.iterator.failed_item();
  }

  /// Returns whether the epoch is over, which it is after an exception of a `Loader`'s item.
  bool operator==(std::default_sentinel_t end) const {
    if constexpr (requires { place_.iterator == end; }) {
      return place_.iterator == end;
    } else {
      return index_ >= batches_->size();
    }
  }

 private:
  friend class TransformedBatches;
  Iterator(const TransformedBatches& batches, detail::SourcePlace<Source> place, int64_t index,
           int64_t epoch)
      : batches_(&batches), place_(std::move(place)), index_(index), epoch_(epoch) {}

  const TransformedBatches* batches_;
  detail::SourcePlace<Source> place_;
  int64_t index_;
  int64_t epoch_;
};

}  // namespace sconce::data
