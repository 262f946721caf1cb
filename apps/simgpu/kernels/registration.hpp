#pragma once

namespace simgpu {

/// Replaces LibTorch's kernels of a GPU. The runtime calls it once it has loaded this library. Ends
/// the process with a line on standard error if LibTorch has another version than at compile time.
extern "C" __attribute__((visibility("default"))) void simgpu_register_kernels();

}  // namespace simgpu
