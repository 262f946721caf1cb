#include "sconce/seed_everything.hpp"

#include <ATen/Context.h>

namespace sconce {

uint64_t seed_everything(uint64_t seed) {
  at::manual_seed(seed);
  std::srand(static_cast<unsigned>(seed));
  return seed;
}

}  // namespace sconce
