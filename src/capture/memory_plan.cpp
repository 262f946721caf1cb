#include "capture/memory_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sconce::detail {

namespace {

constexpr size_t alignment = 64;  // LibTorch's alignment on the CPU

size_t aligned(size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

bool meet(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> largest_first(lifetimes.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::sort(largest_first.begin(), largest_first.end(), [&](size_t a, size_t b) {
    return std::pair(lifetimes[b].bytes, a) < std::pair(lifetimes[a].bytes, b);
  });
  std::vector<size_t> placed;  // ordered by offset
  for (const size_t next : largest_first) {
    const size_t bytes = aligned(lifetimes[next].bytes);
    size_t offset = 0;
    for (const size_t other : placed) {
      if (!meet(lifetimes[next], lifetimes[other])) continue;
      if (offset + bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + aligned(lifetimes[other].bytes));
    }
    plan.offsets[next] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto after =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](size_t value, size_t other) { return value < plan.offsets[other]; });
    placed.insert(after, next);
  }
  return plan;
}

}  // namespace sconce::detail
