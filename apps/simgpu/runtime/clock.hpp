#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simgpu {

/// A vector clock that stores, for each stream, the number of pieces of work that are known to come
/// earlier.
class Clock {
 public:
  uint64_t at(size_t stream) const { return stream < ticks_.size() ? ticks_[stream] : 0; }

  void set(size_t stream, uint64_t tick) {
    if (stream >= ticks_.size()) ticks_.resize(stream + 1);
    ticks_[stream] = tick;
  }

  /// Merges the other clock into this one.
  void join(const Clock& other) {
    if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
    for (size_t i = 0; i < other.ticks_.size(); ++i) {
      ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
    }
  }

  /// Returns whether this clock includes everything in the other clock.
  bool includes(const Clock& other) const {
    for (size_t i = 0; i < other.ticks_.size(); ++i) {
      if (at(i) < other.ticks_[i]) return false;
    }
    return true;
  }

 private:
  std::vector<uint64_t> ticks_;
};

}  // namespace simgpu
