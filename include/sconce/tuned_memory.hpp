#pragma once

namespace sconce {

/// Reports which `tune_memory` settings are in effect.
struct TunedMemory {
  bool reuses_freed_memory = false;  ///< whether freed CPU memory is reused
  bool huge_pages = false;  ///< whether tensors of 2 MiB or more on the CPU request huge pages
};

/// Speeds up CPU memory allocation in the current process, and returns the settings that a probe
/// found to be in effect:
/// - Freed memory is kept and reused for later tensors.
///   By default, glibc's `malloc` may return large freed blocks to the system, so each training
///   step requests the same pages again, and the system has to clear them first. Blocks larger than
///   32 MiB are still returned to the system. Other implementations of `malloc` may not support
///   this setting.
/// - LibTorch requests huge pages, controlled by its environment variable `THP_MEM_ALLOC_ENABLE`.
///   LibTorch reads this variable once, when it allocates the first tensor, so setting it later has
///   no effect. The variable is set only during the probe, so that child processes do not inherit
///   it. An existing value is not overwritten. The system provides huge pages only if they are
///   allowed (see `/sys/kernel/mm/transparent_hugepage/enabled`) and available.
///
/// Call this function first in `main`, before the first tensor is created. Because the function
/// changes the environment, call it before the process starts other threads. The settings stay in
/// effect until the process ends, so the process's memory usage stays at its peak. GPU memory is
/// not affected, because LibTorch's own allocator already caches it.
/// Python: the `MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_`, and `THP_MEM_ALLOC_ENABLE`
/// environment variables, set before the interpreter starts.
TunedMemory tune_memory();

}  // namespace sconce
