#pragma once

#include <string>

namespace simgpu {

/// Returns whether the operator's namespace belongs to LibTorch or to the Python part of PyTorch.
bool is_of_libtorch(const std::string& name);

/// Redirects operators from other libraries that have both a CUDA kernel and a CPU kernel to the
/// CPU kernel when they are called on a GPU. This includes operators and kernels that are
/// registered later. Must be called exactly once.
void follow_custom_operators();

}  // namespace simgpu
