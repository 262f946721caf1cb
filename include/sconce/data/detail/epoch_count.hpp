#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sconce/data/sampler.hpp"

/// Counts a loader's epochs. For internal use.
namespace sconce::data::detail {

// Stores the epoch of a loader's next `begin()`. Each copy of the loader refers to the same epoch,
// and several threads may access it concurrently.
class EpochCount {
 public:
  // `caller` is the loader's class name for error messages. The first epoch is the sampler's epoch,
  // or 0.
  explicit EpochCount(const char* caller, const AnySampler& sampler = {});

  // A move copies the count, because the moved-from loader still needs it.
  EpochCount(const EpochCount&) = default;
  EpochCount& operator=(const EpochCount&) = default;
  ~EpochCount() = default;

  // Sets the next epoch. Throws if it is negative.
  void set(int64_t epoch) const;

  // Returns the next epoch and advances the count. If the sampler requires `set_epoch`, only `set`
  // advances the epoch, and a second call without `set` in between warns once.
  int64_t take() const;

  // Returns the epoch passed to `begin(batch, epoch)`. Throws if it is negative.
  int64_t named(int64_t epoch) const;

 private:
  struct State {
    explicit State(int64_t first) : next(first) {}
    std::atomic<int64_t> next;
    std::atomic<bool> is_taken = false;  // whether `take` has been called since the last `set`
    std::atomic<bool> has_warned = false;
  };

  const char* caller_;
  bool requires_set_epoch_;
  std::shared_ptr<State> state_;
};

}  // namespace sconce::data::detail
