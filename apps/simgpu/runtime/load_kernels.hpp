#pragma once

namespace simgpu {

/// Loads the kernels on the first call in a process that uses LibTorch, if there is a GPU. Ends the
/// process if they cannot be loaded.
void load_kernels();

}  // namespace simgpu
