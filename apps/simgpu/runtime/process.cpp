#include "simgpu/runtime/process.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <set>

#include "simgpu/runtime/devices.hpp"
#include "simgpu/runtime/host_clock.hpp"

namespace simgpu {

namespace {

// A C library mutex cannot be used here. Simulated GPUs intercept calls to C library mutexes and
// treat each lock as synchronization between threads.
class ProcessLock {
 public:
  void lock() {
    const void* const self = this_thread();
    if (owner_ == self) {
      ++depth_;
      return;
    }
    const void* owner = nullptr;
    while (!owner_.compare_exchange_strong(owner, self)) {
      if (owner != nullptr) owner_.wait(owner);
      owner = nullptr;
    }
    depth_ = 1;
  }

  void unlock() {
    if (--depth_ > 0) return;
    owner_ = nullptr;
    owner_.notify_one();
  }

 private:
  static const void* this_thread() {
    thread_local const char here = 0;
    return &here;
  }

  std::atomic<const void*> owner_ = nullptr;
  int depth_ = 0;
};

ProcessLock process_lock;

std::atomic<bool> forked_after_use = false;

// No other thread may hold a lock while the process is being forked.
void before_fork() {
  process_lock.lock();
  hold_exchanges();
}

void after_fork() {
  release_exchanges();
  process_lock.unlock();
}

void after_fork_in_child() {
  forked_after_use = forked_after_use || has_any_context();
  after_fork();
}

[[maybe_unused]] const int fork_handlers =
    pthread_atfork(before_fork, after_fork, after_fork_in_child);

}  // namespace

Lock::Lock() {
  process_lock.lock();
}
Lock::~Lock() {
  process_lock.unlock();
}

bool is_unusable_fork() {
  return forked_after_use;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

cudaError_t fail(cudaError_t error) {
  last_error() = error;
  return error;
}

void write_once(const std::string& line) {
  static auto& written = *new std::set<std::string>;
  const Lock lock;
  if (written.insert(line).second) std::fprintf(stderr, "%s\n", line.c_str());
}

cudaError_t refuse(const char* function) {
  write_once("simulated GPUs: " + std::string(function) + " is not supported");
  return fail(cudaErrorNotSupported);
}

}  // namespace simgpu
