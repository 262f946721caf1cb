#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "sconce/data/sampler.hpp"

/// The part of loaders that counts epochs. Not for direct use.
namespace sconce::data::detail {

// The epoch of the next `begin()` of a loader. Copies share it, and threads may take from it at
// once.
class EpochCount {
 public:
  // `who` is the class of the loader, for messages. The first epoch is that of the sampler, or 0.
  explicit EpochCount(const char* who, const AnySampler& sampler = {});

  // A move copies, because a loader that was moved from still has a count.
  EpochCount(const EpochCount&) = default;
  EpochCount& operator=(const EpochCount&) = default;
  ~EpochCount() = default;

  // Sets the next epoch. Throws if it is negative.
  void set(int64_t epoch) const;

  // Returns the next epoch and moves on. If the sampler keeps its epoch, only `set` moves it; then
  // a second call without a `set` warns, once.
  int64_t take() const;

  // Returns the epoch that a `begin(batch, epoch)` names. Throws if it is negative.
  int64_t named(int64_t epoch) const;

 private:
  struct State {
    explicit State(int64_t first) : next(first) {}
    std::atomic<int64_t> next;
    std::atomic<bool> is_taken = false;  // since the last `set`
    std::atomic<bool> has_warned = false;
  };

  const char* who_;
  bool requires_set_epoch_;
  std::shared_ptr<State> state_;
};

}  // namespace sconce::data::detail
