#pragma once

#include <cstdint>

namespace sconce::data {

/// Computes the generator seed for an item or batch from a seed, an epoch, and an index. Similar
/// arguments yield unrelated seeds. The lower 32 bits, the only bits that LibTorch's CPU generator
/// uses, are also unrelated. The same arguments yield the same seed on every machine.
uint64_t mix_seeds(uint64_t seed, uint64_t epoch, uint64_t index);

}  // namespace sconce::data
