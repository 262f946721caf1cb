#pragma once

#include <cstddef>
#include <vector>

namespace sconce::detail {

/// The span in which memory is in use, from call `first` through call `last`.
struct Lifetime {
  size_t bytes;
  size_t first;
  size_t last;
};

/// Offsets into a single block of memory.
struct MemoryPlan {
  std::vector<size_t> offsets = {};  ///< one per lifetime, in multiples of 64 bytes
  size_t bytes = 0;                  ///< size of the block
};

/// Returns offsets at which memory overlaps only if the lifetimes share no call. The largest memory
/// is placed first, and each one goes to the lowest free offset.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace sconce::detail
