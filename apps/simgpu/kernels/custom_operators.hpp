#pragma once

#include <string>

namespace simgpu {

/// Returns whether the operator's namespace belongs to LibTorch or to the Python part of PyTorch.
bool is_of_libtorch(const std::string& name);

/// Redirects operators of other libraries that have kernels for both CUDA and the CPU to their CPU
/// kernel on a GPU, including operators and kernels that are registered later. Must be called once.
void follow_custom_operators();

}  // namespace simgpu
