#pragma once

#include <cstdint>

namespace sconce::data {

/// Returns the seed of the generator for one item or batch, computed from a seed, an epoch and an
/// index. Neighbouring arguments give unrelated seeds, also in the lower 32 bits, the only ones
/// that LibTorch's CPU generator uses. The same arguments give the same seed on every machine.
uint64_t mix_seeds(uint64_t seed, uint64_t epoch, uint64_t index);

}  // namespace sconce::data
