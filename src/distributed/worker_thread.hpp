#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "sconce/distributed/data_parallel.hpp"

namespace sconce::nn {

/// A thread that runs one task after another. Starting a thread for each task would take longer,
/// and LibTorch would initialize its per-thread memory again. Only one thread may use the object.
class DataParallelBase::WorkerThread {
 public:
  /// @throw std::system_error if the system cannot create the thread.
  WorkerThread() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

  /// Starts `task(index)`, which must not throw. The task must exist until `wait` returns. The
  /// previous task must have been waited for.
  void start(const std::function<void(size_t)>& task, size_t index) noexcept {
    const std::scoped_lock lock(mutex_);
    task_ = &task;
    index_ = index;
    changed_.notify_all();
  }

  /// Waits until the task has ended.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return task_ == nullptr; });
  }

 private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return task_ != nullptr; })) {
      lock.unlock();
      (*task_)(index_);
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void(size_t)>* task_ = nullptr;  // null if the thread is idle
  size_t index_ = 0;
  std::jthread thread_;  // constructed last, and joined first
};

}  // namespace sconce::nn
