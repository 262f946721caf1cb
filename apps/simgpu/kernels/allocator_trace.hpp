#pragma once

namespace simgpu {

/// Tells the runtime from now on of each block that LibTorch's allocator takes back. Does it once;
/// must be called when the allocator knows its devices, as it does once a tensor of a GPU exists.
void trace_allocator();

}  // namespace simgpu
