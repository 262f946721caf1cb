#pragma once

namespace simgpu {

/// Loads the kernels at its first call in a process that has LibTorch, if there is a GPU. Ends the
/// process if they cannot be loaded.
void load_kernels();

}  // namespace simgpu
