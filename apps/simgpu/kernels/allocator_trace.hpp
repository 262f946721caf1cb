#pragma once

namespace simgpu {

/// Starts notifying the runtime of each block that is returned to LibTorch's allocator. Only the
/// first call has an effect. The allocator must have been initialized with its devices, which is
/// the case once a GPU tensor exists.
void trace_allocator();

}  // namespace simgpu
