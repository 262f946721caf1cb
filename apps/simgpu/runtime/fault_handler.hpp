#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

/// Lets the fault handler name the block. The number of blocks that the handler can track is
/// limited, but no program comes close to the limit.
void watch_block(uintptr_t begin, size_t size, int device);

/// Undoes `watch_block`.
void forget_block(uintptr_t begin);

/// Installs the SIGSEGV handler, which reports when the host accesses GPU memory through a pointer,
/// unless it is already installed. Programs may replace it, so call this function wherever they use
/// CUDA.
void keep_fault_handler();

}  // namespace simgpu
