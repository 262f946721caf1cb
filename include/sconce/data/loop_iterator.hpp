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

/// The iterator of `Batches`, `DataLoader`, and `TransformedBatches`: the position of one loop in
/// its epoch. It is a C++20 input iterator, and its copies share the position. It may outlive the
/// object that it comes from. Use it in one thread only. Python: `iter(loader)`.
template <class Batch>
class LoopIterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  /// Starts a loop. For internal use: call `begin()` on a loader instead.
  LoopIterator(std::vector<detail::LoaderLoop::Make> makers, detail::LoaderLoop::Options options)
      : loop_(std::make_shared<detail::LoaderLoop>(std::move(makers), std::move(options))) {}

  /// Returns the batch. The first call makes it or waits for it, and it is kept until the iterator
  /// advances.
  /// @throw any exception from making the batch, such as an item's exception. It ends the epoch,
  /// and this function and `++` throw it again when called.
  /// @throw c10::Error if the epoch has ended.
  const Batch& operator*() const& {
    return static_cast<const detail::TypedBatch<Batch>&>(loop_->batch()).batch;
  }
  /// Returns a copy of the batch, because a temporary iterator does not keep it.
  Batch operator*() const&& { return **this; }
  /// Returns a pointer to the batch, as in `batches.begin()->data`. The pointer is valid until
  /// `++`, or until the last copy of the iterator is destroyed.
  /// @throw the same exceptions as `*`.
  const Batch* operator->() const { return &**this; }

  /// Advances to the next batch and releases this one. If this batch has not been read, it is made
  /// first.
  /// @throw the same exceptions as `*`.
  LoopIterator& operator++() {
    loop_->advance();
    return *this;
  }

  /// Advances to the next batch. Returns nothing, because an input iterator cannot go back.
  void operator++(int) { ++*this; }

  /// Returns the epoch of this loop.
  int64_t epoch() const { return loop_->epoch(); }

  /// Returns the item whose exception this loop threw. Returns `std::nullopt` if the loop has not
  /// thrown, or if the exception did not come from an item's `get` in a `DataLoader`.
  std::optional<int64_t> failed_item() const { return loop_->failed_item(); }

  /// Returns whether the epoch has ended.
  bool operator==(std::default_sentinel_t) const { return loop_->is_over(); }

 private:
  std::shared_ptr<detail::LoaderLoop> loop_;  // destroying the last copy ends the threads
};

}  // namespace sconce::data
