#pragma once

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace sconce::data {

// Limits the parallel loops that LibTorch starts in the calling thread to that thread.
// at::set_num_threads is not suitable, because it would also set the number of MKL threads for the
// whole process. Instead, this function looks up an OpenMP function in LibTorch by symbol name,
// because the OpenMP headers and library name are not known here.
inline void use_one_thread() {
  at::get_num_threads();  // initializes the number of threads on first use
  using SetNumThreads = void (*)(int);
  const auto set = reinterpret_cast<SetNumThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}

}  // namespace sconce::data
