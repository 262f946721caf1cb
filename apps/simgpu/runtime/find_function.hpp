#pragma once

#include <dlfcn.h>

namespace simgpu {

/// Returns a function that is loaded in the process, such as one of Python's, or nullptr.
template <class Function>
Function find_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace simgpu
