#pragma once

#include <cstdint>

namespace sconce {

/// Seeds the default generators of LibTorch, on the CPU and on every GPU, and that of `std::rand`,
/// and returns the seed, as what has a seed of its own takes it (`data::LoaderOptions`, for one).
/// Every rank of a process group calls it with the same seed. Python: `seed_everything` of
/// Lightning.
uint64_t seed_everything(uint64_t seed);

}  // namespace sconce
