#include "simgpu/runtime/python_exit.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <system_error>
#include <thread>

#include "simgpu/runtime/find_function.hpp"

// After a backward pass, a LibTorch autograd thread destroys the graph while the caller continues.
// Destroying the graph requires Python's lock. If Python is already shutting down, Python versions
// before 3.14 terminate the thread with pthread_exit. Because pthread_exit is called inside a
// destructor, it aborts the process with "terminate called without an active exception". With
// simulated GPUs, this abort is frequent, because CPU kernels are slow.

namespace simgpu {

namespace {

bool is_python_ending() {
  for (const char* name : {"Py_IsFinalizing", "_Py_IsFinalizing"}) {
    const auto is_ending = find_function<int (*)()>(name);
    if (is_ending != nullptr) return is_ending() != 0;
  }
  return false;
}

bool is_main_thread() {
  return gettid() == getpid();
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// The file contains text such as "123 (pt_autograd_0) S 1 ...", where S means that the thread is
// sleeping.
bool is_busy_autograd(const std::filesystem::path& thread) {
  const auto line = first_line(thread / "stat");
  const auto name_end = line.rfind(") ");
  return line.find("(pt_autograd_") != std::string::npos && name_end != std::string::npos &&
         line.substr(name_end + 2, 1) != "S";
}

bool is_any_autograd_busy() {
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (is_busy_autograd(thread.path())) return true;
  }
  return false;
}

}  // namespace

void wait_for_autograd_at_exit() {
  static std::atomic<bool> is_registered = false;
  static const auto has_lock = find_function<int (*)()>("PyGILState_Check");
  static const auto run = find_function<int (*)(const char*, void*)>("PyRun_SimpleStringFlags");
  if (is_registered || has_lock == nullptr || run == nullptr || has_lock() == 0) return;
  if (is_registered.exchange(true)) return;
  run("__import__('atexit').register(__import__('ctypes').CDLL(None).simgpu_wait_for_autograd)",
      nullptr);  // runs in the program's own namespace, so it defines no names
}

}  // namespace simgpu

#pragma GCC visibility push(default)

extern "C" {

// Python calls this function without holding its lock. A thread that is waiting for Python's lock
// also sleeps, but only until it acquires the lock. Therefore, this function checks several times
// whether the threads are idle.
void simgpu_wait_for_autograd() {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + 2s;
  for (int idle = 0; idle < 3 && std::chrono::steady_clock::now() < deadline;) {
    idle = simgpu::is_any_autograd_busy() ? 0 : idle + 1;
    std::this_thread::sleep_for(1ms);
  }
}

// A thread that Python would terminate waits for the process to end instead, as in Python 3.14.
void pthread_exit(void* value) {
  if (!simgpu::is_main_thread() && simgpu::is_python_ending()) {
    while (true) pause();
  }
  reinterpret_cast<void (*)(void*)>(dlsym(RTLD_NEXT, "pthread_exit"))(value);
  __builtin_unreachable();
}

}  // extern "C"

#pragma GCC visibility pop
