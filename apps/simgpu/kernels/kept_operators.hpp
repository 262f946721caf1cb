#pragma once

#include <c10/core/DispatchKey.h>

#include <string>

namespace simgpu {

/// Whether LibTorch's own kernel of the key stays: it makes or describes tensors, launches nothing
/// itself, or is composed of operators that are replaced.
bool keeps_kernel(const std::string& name, c10::DispatchKey key);

}  // namespace simgpu
