#include "simgpu/runtime/load_kernels.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>

#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/python_exit.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

bool has_libtorch() {
  void* libtorch = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  if (libtorch != nullptr) dlclose(libtorch);
  return libtorch != nullptr;
}

std::string own_folder() {
  Dl_info info = {};
  dladdr(reinterpret_cast<const void*>(&load_kernels), &info);
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// Terminates the process immediately, because the caller may hold locks that LibTorch's destructors
// need.
[[noreturn]] void end_without_kernels(const char* reason) {
  std::fprintf(stderr, "simulated GPUs: the kernels cannot be loaded: %s\n", reason);
  std::fflush(nullptr);
  _exit(1);
}

void load_once() {
  const auto path = own_folder() + "libsconce_simgpu_kernels.so";
  void* kernels = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (kernels == nullptr) end_without_kernels(dlerror());
  void* start = dlsym(kernels, "simgpu_register_kernels");
  if (start == nullptr) end_without_kernels(dlerror());
  keep_counts();
  reinterpret_cast<void (*)()>(start)();
}

}  // namespace

void load_kernels() {
  static std::atomic<bool> is_loaded = false;
  thread_local bool is_loading = false;  // the kernels query the devices themselves
  if (is_loaded) return wait_for_autograd_at_exit();
  if (is_loading) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (is_loaded || num_gpus() == 0 || !has_libtorch()) return;
  is_loading = true;
  load_once();
  is_loaded = true;
}

}  // namespace simgpu
