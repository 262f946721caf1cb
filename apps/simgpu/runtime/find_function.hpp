#pragma once

#include <dlfcn.h>

namespace simgpu {

/// Looks up a function that is loaded in the process, such as one of Python's functions. Returns
/// nullptr if there is none.
template <class Function>
Function find_function(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace simgpu
