#pragma once

#include <cstddef>
#include <vector>

namespace sconce::detail {

/// The range of calls that use a piece of memory, from `first` through `last`.
struct Lifetime {
  size_t bytes;
  size_t first;
  size_t last;
};

/// The offsets of all memory in a single block.
struct MemoryPlan {
  std::vector<size_t> offsets = {};  ///< one per lifetime, in multiples of 64 bytes
  size_t bytes = 0;                  ///< size of the block
};

/// Plans offsets so that two pieces of memory overlap only if their lifetimes are disjoint. The
/// largest piece is placed first, and each piece is placed at the lowest free offset.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace sconce::detail
