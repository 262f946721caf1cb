#pragma once

namespace simgpu {

/// Replaces LibTorch's GPU kernels. The runtime calls this function after loading this library. If
/// LibTorch's version differs from the version at compile time, prints a line to standard error and
/// terminates the process.
extern "C" __attribute__((visibility("default"))) void simgpu_register_kernels();

}  // namespace simgpu
