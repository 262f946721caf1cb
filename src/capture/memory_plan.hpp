#pragma once

#include <cstddef>
#include <vector>

namespace sconce::detail {

/// Memory that is in use from call `first` to call `last`, both included.
struct Lifetime {
  size_t bytes;
  size_t first;
  size_t last;
};

/// Places in one block of memory.
struct MemoryPlan {
  std::vector<size_t> offsets = {};  ///< of the lifetimes, multiples of 64 bytes
  size_t bytes = 0;                  ///< of the block
};

/// Returns places in which no two lifetimes that have a call in common overlap. The largest gets
/// its place first, each the lowest one that is free.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace sconce::detail
