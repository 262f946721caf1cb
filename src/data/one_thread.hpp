#pragma once

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace sconce::data {

// Makes LibTorch's parallel loops that start in the calling thread run in this thread alone.
// at::set_num_threads is not an option, because it would also set the number of MKL threads for the
// whole process. Instead, this function looks up LibTorch's OpenMP by symbol name, because its
// headers and library name are not known here.
inline void use_one_thread() {
  at::get_num_threads();  // sets the number of threads on first use in a thread
  using SetNumThreads = void (*)(int);
  const auto set = reinterpret_cast<SetNumThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}

}  // namespace sconce::data
