#pragma once

#include <dlfcn.h>

namespace simgpu {

/// Returns a function of what the process has loaded, such as Python's, or nullptr.
template <class Function>
Function find_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace simgpu
