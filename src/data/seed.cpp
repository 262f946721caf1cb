#include "sconce/data/seed.hpp"

namespace sconce::data {
namespace {

// The mixing function from SplitMix64. The function is one-to-one, and flipping one bit in x flips
// about half of the bits in the result.
uint64_t split_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t mix_seeds(uint64_t seed, uint64_t epoch, uint64_t index) {
  return split_mix(split_mix(split_mix(seed) + epoch) + index);
}

}  // namespace sconce::data
