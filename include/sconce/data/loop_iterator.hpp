#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sconce/data/detail/loader_loop.hpp"

namespace sconce::data {

/// The iterator type of `Batches`, `DataLoader`, and `TransformedBatches`, which represents a
/// loop's position in its epoch. The iterator is a C++20 input iterator, and copies of an iterator
/// share its position. An iterator may outlive the object that created it. Use an iterator from a
/// single thread only.
/// Python: `iter(loader)`.
template <class Batch>
class LoopIterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  /// Starts a loop. For internal use: call `begin()` on a loader instead.
  LoopIterator(std::vector<detail::LoaderLoop::Make> makers, detail::LoaderLoop::Options options)
      : loop_(std::make_shared<detail::LoaderLoop>(std::move(makers), std::move(options))) {}

  /// Returns the batch. The first call creates the batch or waits for it. The batch is kept until
  /// the iterator advances.
  /// @throw any exception thrown while the batch was created, such as an item's exception.
  /// The exception ends the epoch, and later calls to this function and `++` rethrow the exception.
  /// @throw c10::Error if the epoch has ended.
  const Batch& operator*() const& {
    return static_cast<const detail::TypedBatch<Batch>&>(loop_->batch()).batch;
  }
  /// Returns a copy of the batch, because a temporary iterator does not keep the batch alive.
  Batch operator*() const&& { return **this; }
  /// Returns a pointer to the batch, as in `batches.begin()->data`. The pointer is valid until
  /// `++`, or until the last copy of the iterator is destroyed.
  /// @throw the same exceptions as `*`.
  const Batch* operator->() const { return &**this; }

  /// Advances to the next batch and releases the current batch. If the current batch has not been
  /// read, the batch is created first.
  /// @throw the same exceptions as `*`.
  LoopIterator& operator++() {
    loop_->advance();
    return *this;
  }

  /// Advances to the next batch. Returns void, because input iterators are single-pass.
  void operator++(int) { ++*this; }

  /// Returns the epoch of this loop.
  int64_t epoch() const { return loop_->epoch(); }

  /// Returns the index of the item that caused the exception thrown by this loop. Returns
  /// `std::nullopt` if the loop has not thrown, or if the exception was not thrown by an item's
  /// `get` in a `DataLoader`.
  std::optional<int64_t> failed_item() const { return loop_->failed_item(); }

  /// Returns whether the epoch has ended.
  bool operator==(std::default_sentinel_t) const { return loop_->is_over(); }

 private:
  std::shared_ptr<detail::LoaderLoop> loop_;  // destroying the last copy stops the threads
};

}  // namespace sconce::data
