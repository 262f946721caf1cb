#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <initializer_list>

// When Python ends, its versions before 3.14 end each other thread that asks for Python's lock, by
// pthread_exit. Threads of LibTorch's autograd do that last of all in a backward pass, within a
// destructor, where pthread_exit ends the process: "terminate called without an active exception".
// They wait for the end of the process instead, as Python 3.14 lets them.

namespace simgpu {

namespace {

bool is_python_ending() {
  for (const char* name : {"Py_IsFinalizing", "_Py_IsFinalizing"}) {
    const auto function = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, name));
    if (function != nullptr) return function() != 0;
  }
  return false;
}

bool is_main_thread() {
  return gettid() == getpid();
}

}  // namespace

}  // namespace simgpu

extern "C" __attribute__((visibility("default"))) void pthread_exit(void* value) {
  if (!simgpu::is_main_thread() && simgpu::is_python_ending()) {
    while (true) pause();
  }
  reinterpret_cast<void (*)(void*)>(dlsym(RTLD_NEXT, "pthread_exit"))(value);
  __builtin_unreachable();
}
