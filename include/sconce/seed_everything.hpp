#pragma once

#include <cstdint>

namespace sconce {

/// Seeds `std::rand` and LibTorch's default generators on the CPU and on every GPU. Returns the
/// seed, so that you can use it elsewhere, for example in `data::DataLoaderOptions`. In a process
/// group, call this function with the same seed on every rank. Python: Lightning's
/// `seed_everything`.
uint64_t seed_everything(uint64_t seed);

}  // namespace sconce
