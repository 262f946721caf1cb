#pragma once

namespace sconce {

/// Has this process keep the CPU memory that it frees, for its next tensors. Otherwise glibc's
/// `malloc` returns large blocks to the system when they are freed, and every training step pays
/// for getting the same pages again, which the system clears first. How often depends on where the
/// blocks happen to lie. Blocks above 32 MiB still go back. Call it once, at the start of `main`;
/// it holds until the process ends, whose memory then stays at its peak. GPU memory is not
/// affected, since LibTorch's own allocator keeps it. Returns whether the process' `malloc` accepts
/// this, which another library's may not. Python: the environment variables
/// `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_`, set before the interpreter starts.
bool keep_freed_memory();

}  // namespace sconce
