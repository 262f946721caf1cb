#include "sconce/seed_everything.hpp"

#include <ATen/Context.h>

#include "host_call.hpp"

namespace sconce {

uint64_t seed_everything(uint64_t seed) {
  detail::check_not_capturing("sconce::seed_everything");
  at::manual_seed(seed);
  std::srand(static_cast<unsigned>(seed));
  return seed;
}

}  // namespace sconce
