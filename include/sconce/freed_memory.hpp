#pragma once

#include <malloc.h>

#include <limits>

namespace sconce {

/// Makes this process keep the CPU memory that it frees, to reuse it for later tensors. By default
/// glibc's `malloc` may return large freed blocks to the system. Each training step then gets the
/// same pages again, which the system has to clear first. How often this happens depends on where
/// the blocks lie. Blocks above 32 MiB still go back to the system.
/// Call it once, at the start of `main`. It holds until the process ends, so the memory of the
/// process stays at its peak. GPU memory is not affected: LibTorch's own allocator keeps it.
/// Returns whether the `malloc` of this process accepts the setting; that of another library may
/// not. Python: the environment variables `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_`,
/// set before the interpreter starts.
inline bool keep_freed_memory() {
  constexpr int largest_block = 32 << 20;  // the highest that glibc accepts on 64 bits
  return mallopt(M_MMAP_THRESHOLD, largest_block) == 1 &&
         mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max()) == 1;
}

}  // namespace sconce
