#pragma once

namespace simgpu {

/// From now on, notifies the runtime of each block that is returned to LibTorch's allocator. Only
/// the first call has an effect. The allocator must know its devices by then, which it does once a
/// GPU tensor exists.
void trace_allocator();

}  // namespace simgpu
