#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

/// Allows the fault handler to identify the block in its report. The number of blocks that the
/// handler can track is limited, but programs do not come close to the limit.
void watch_block(uintptr_t begin, size_t size, int device);

/// Undoes `watch_block`.
void forget_block(uintptr_t begin);

/// Installs the SIGSEGV handler if it is not currently installed. The handler reports accesses to
/// GPU memory through a pointer on the host. Programs may replace the handler, so call this
/// function wherever they use CUDA.
void keep_fault_handler();

}  // namespace simgpu
