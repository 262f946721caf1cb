#include "sconce/freed_memory.hpp"

#include <malloc.h>

#include <limits>

namespace sconce {

bool keep_freed_memory() {
  constexpr int largest_block = 32 << 20;  // the highest that glibc accepts on 64 bits
  return mallopt(M_MMAP_THRESHOLD, largest_block) == 1 &&
         mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max()) == 1;
}

}  // namespace sconce
