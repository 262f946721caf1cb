#pragma once

#include <cstdint>

namespace sconce::data {

/// Returns the seed of the generator for one item or batch, computed from a seed, an epoch, and an
/// index. Neighboring arguments yield unrelated seeds. This includes their lower 32 bits, which are
/// the only ones that LibTorch's CPU generator uses. The same arguments yield the same seed on
/// every machine.
uint64_t mix_seeds(uint64_t seed, uint64_t epoch, uint64_t index);

}  // namespace sconce::data
