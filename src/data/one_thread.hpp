#pragma once

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace sconce::data {

// Lets LibTorch's parallel loops that begin in the calling thread run in it alone.
// at::set_num_threads would set MKL's threads too, which are those of the whole process, so OpenMP
// is asked by itself: that of LibTorch, whose headers and name are not known here.
inline void use_one_thread() {
  at::get_num_threads();  // sets the thread's number when it is called first
  using SetNumThreads = void (*)(int);
  const auto set = reinterpret_cast<SetNumThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(1);
}

}  // namespace sconce::data
