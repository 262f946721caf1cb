#pragma once

#include <malloc.h>

#include <limits>

namespace sconce {

/// Has this process keep the CPU memory that it frees, for its next tensors. Otherwise glibc's
/// `malloc` returns large blocks to the system when they are freed, and every training step pays
/// for getting the same pages again, which the system clears first. How often depends on where the
/// blocks happen to lie. Blocks above 32 MiB still go back. Call it once, at the start of `main`;
/// it holds until the process ends, whose memory then stays at its peak. GPU memory is not
/// affected, since LibTorch's own allocator keeps it. Returns whether the process' `malloc` accepts
/// this, which another library's may not. Python: the environment variables
/// `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_`, set before the interpreter starts.
inline bool keep_freed_memory() {
  constexpr int largest_block = 32 << 20;  // the highest that glibc accepts on 64 bits
  return mallopt(M_MMAP_THRESHOLD, largest_block) == 1 &&
         mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max()) == 1;
}

}  // namespace sconce
