#pragma once

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace sconce::data {

// Makes LibTorch's parallel loops that start in the calling thread run in this thread alone.
// at::set_num_threads would also set the threads of MKL for the whole process. So this calls
// LibTorch's OpenMP directly, by name, because its headers and library name are not known here.
inline void use_one_thread() {
  at::get_num_threads();  // sets the number of threads at its first call in a thread
  using SetNumThreads = void (*)(int);
  const auto set = reinterpret_cast<SetNumThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}

}  // namespace sconce::data
