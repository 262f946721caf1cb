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

/// Position of one loop in its epoch: the iterator of `Batches`, `DataLoader` and
/// `TransformedBatches`. It is a C++20 input iterator, whose copies share the position. It holds
/// all that it needs, so it may outlive the object that it comes from. It belongs to one thread.
/// Python: `iter(loader)`.
template <class Batch>
class LoopIterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  /// Starts a loop. Not for direct use: `begin()` of a loader makes iterators.
  LoopIterator(std::vector<detail::LoaderLoop::Make> makers, detail::LoaderLoop::Options options)
      : loop_(std::make_shared<detail::LoaderLoop>(std::move(makers), std::move(options))) {}

  /// Returns the batch, which is made or waited for at the first call and kept until `++`.
  /// @throw what making the batch threw, such as the exception of an item. The epoch is over then,
  /// and this function and `++` throw the exception again.
  /// @throw c10::Error if the epoch is over.
  const Batch& operator*() const& {
    return static_cast<const detail::Made<Batch>&>(loop_->batch()).batch;
  }
  /// Returns a copy of the batch, since a temporary iterator does not keep it.
  Batch operator*() const&& { return **this; }
  /// Returns a pointer to the batch, for `batches.begin()->data`. The pointer is valid until `++`,
  /// or until the last copy of the iterator is gone.
  /// @throw as `*`.
  const Batch* operator->() const { return &**this; }

  /// Goes to the next batch and releases this one, which is made first if it has not been read.
  /// @throw as `*`.
  LoopIterator& operator++() {
    loop_->advance();
    return *this;
  }

  /// Goes to the next batch; returns nothing, because an input iterator cannot go back.
  void operator++(int) { ++*this; }

  /// Returns the epoch of this loop.
  int64_t epoch() const { return loop_->epoch(); }

  /// Returns the item of the exception that this loop threw. None: it threw none, or one that was
  /// not of the `get` of an item of a `DataLoader`.
  std::optional<int64_t> failed_item() const { return loop_->failed_item(); }

  /// Returns whether the epoch is over.
  bool operator==(std::default_sentinel_t) const { return loop_->is_over(); }

 private:
  std::shared_ptr<detail::LoaderLoop> loop_;  // destroying the last copy ends the threads
};

}  // namespace sconce::data
