#pragma once

namespace sconce {

/// What `tune_memory` has found to be in effect.
struct TunedMemory {
  bool reuses_freed_memory = false;  ///< whether freed memory of the CPU is used again
  bool huge_pages = false;  ///< whether tensors of 2 MiB or more on the CPU ask for huge pages
};

/// Makes the CPU memory of this process faster to get, and returns what a probe shows to be in
/// effect:
/// - Freed memory is kept, to be used for later tensors. By default glibc's `malloc` may return
///   large freed blocks to the system. Each training step then gets the same pages again, which the
///   system has to clear first. Blocks above 32 MiB still go back. Another library's `malloc` may
///   not accept the setting.
/// - LibTorch asks the system for huge pages, by its variable `THP_MEM_ALLOC_ENABLE`. It reads it
///   once, at the first tensor: after that it is too late. The variable is set only for the probe,
///   so that processes that this one starts do not inherit it, and a value that is already there is
///   respected. The system may allow none (`/sys/kernel/mm/transparent_hugepage/enabled`), and
///   gives them where it has some free.
///
/// Call it first in `main`: before the first tensor, and, since it changes the environment, before
/// the process has other threads. It holds until the process ends, so the memory of the process
/// stays at its peak. GPU memory is not affected: LibTorch's own allocator keeps it. Python: the
/// environment variables `MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_` and
/// `THP_MEM_ALLOC_ENABLE`, set before the interpreter starts.
TunedMemory tune_memory();

}  // namespace sconce
