#pragma once

#include <string>

namespace simgpu {

/// Whether the operator's namespace belongs to LibTorch or to the Python part of PyTorch.
bool is_of_libtorch(const std::string& name);

/// Makes operators of other libraries that have kernels for CUDA and for the CPU run the CPU's on a
/// GPU, including operators and kernels that are registered later. Must be called once.
void follow_custom_operators();

}  // namespace simgpu
