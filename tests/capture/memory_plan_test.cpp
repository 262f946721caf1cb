#include "capture/memory_plan.hpp"

#include <random>

#include "catch.hpp"

using sconce::detail::Lifetime;
using sconce::detail::plan_memory;

namespace {

bool overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

TEST_CASE("a memory plan never assigns the same byte to two overlapping lifetimes") {
  std::mt19937 random(1);
  const auto below = [&](size_t end) { return static_cast<size_t>(random()) % end; };
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lifetimes;
    for (size_t i = 0; i < 1 + below(40); ++i) {
      const size_t first = below(30);
      lifetimes.push_back({below(300), first, first + below(10)});
    }
    const auto plan = plan_memory(lifetimes);
    REQUIRE(plan.offsets.size() == lifetimes.size());
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      CHECK(plan.offsets[i] % 64 == 0);
      CHECK(plan.offsets[i] + lifetimes[i].bytes <= plan.bytes);
      for (size_t k = 0; k < i; ++k) {
        const bool meet =
            lifetimes[i].first <= lifetimes[k].last && lifetimes[k].first <= lifetimes[i].last;
        const bool shared =
            overlap(plan.offsets[i], lifetimes[i].bytes, plan.offsets[k], lifetimes[k].bytes);
        CHECK_FALSE((meet && shared));
      }
    }
  }
}

TEST_CASE("a memory plan reuses memory after its lifetime ends") {
  const auto plan = plan_memory({{128, 0, 1}, {128, 2, 3}, {64, 1, 2}, {0, 0, 9}});
  CHECK(plan.bytes == 192);
  CHECK(plan.offsets[0] == plan.offsets[1]);
  CHECK(plan_memory({}).bytes == 0);
}
