#include "sconce/data/seed.hpp"

#include <cstdint>
#include <set>

#include "catch.hpp"

using sconce::data::mix_seeds;

TEST_CASE("mix_seeds returns the same seeds in every release") {
  CHECK(mix_seeds(0, 0, 0) == 0x238275bc38fcbe91);
  CHECK(mix_seeds(1, 2, 3) == 0x6ae515c1c0ac7e37);
  CHECK(mix_seeds(UINT64_MAX, UINT64_MAX, UINT64_MAX) == 0x40aa389ba7cc36a4);
}

TEST_CASE("for neighboring inputs, mix_seeds returns seeds that differ in their lower 32 bits") {
  std::set<uint32_t> lower;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t epoch = 0; epoch < 8; ++epoch) {
      for (uint64_t index = 0; index < 64; ++index) {
        lower.insert(static_cast<uint32_t>(mix_seeds(seed, epoch, index)));
      }
    }
  }
  CHECK(lower.size() == 8 * 8 * 64);
}
