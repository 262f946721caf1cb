#pragma once

namespace simgpu {

/// If there is a GPU, loads the kernels on the first call in a process that uses LibTorch.
/// Terminates the process if the kernels cannot be loaded.
void load_kernels();

}  // namespace simgpu
