#pragma once

#include <cstdint>

namespace sconce::data {

/// Computes the seed of the generator for one item or batch from a seed, an epoch, and an index.
/// Similar arguments yield unrelated seeds. This also applies to the lower 32 bits, which are the
/// only bits used by LibTorch's CPU generator. The same arguments yield the same seed on every
/// machine.
uint64_t mix_seeds(uint64_t seed, uint64_t epoch, uint64_t index);

}  // namespace sconce::data
