#pragma once

#include <c10/core/DispatchKey.h>

#include <string>

namespace simgpu {

/// Returns whether LibTorch's own kernel for the key is kept. A kernel is kept if it creates or
/// describes tensors, launches nothing itself, or is composed of operators that are replaced.
bool keeps_kernel(const std::string& name, c10::DispatchKey key);

}  // namespace simgpu
