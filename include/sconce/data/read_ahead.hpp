#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace sconce::data {

/// Makes batches in threads, ahead of the loop that takes them, and gives them in their order. It is
/// the part of `Loader` that knows nothing of items, and may be used without it. Its owner takes
/// batches in one thread; each worker runs with the thread state (gradients, autocast) of the
/// thread that made this object, and with one thread of LibTorch's, since the workers share the
/// cores already. The destructor ends all threads; it waits for calls of `Make` that run.
class ReadAhead {
 public:
  /// Makes the batch of that index, of whatever type. Asked to stop, it may return null or throw at
  /// once.
  using Make = std::function<std::shared_ptr<void>(int64_t index, const std::stop_token& stop)>;

  /// Starts a thread for each of `workers`, of which none makes a batch that is `ahead` or more
  /// beyond the next to be taken. The batches are those from index `first` to `last - 1`.
  /// @throw c10::Error if `workers` is empty, or `ahead` below 1.
  ReadAhead(std::vector<Make> workers, int64_t ahead, int64_t first, int64_t last);

  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  /// Waits for the next batch and returns it, null after the last.
  /// @throw what making it threw; no batch comes after that one.
  std::shared_ptr<void> next();

 private:
  struct Place {
    bool is_made = false;
    std::shared_ptr<void> batch = {};
    std::exception_ptr error = {};
  };

  void work(const Make& make, const std::stop_token& stop);
  Place& place_of(int64_t index);

  std::mutex mutex_;  // guards all that follows but the threads
  std::condition_variable_any made_;
  std::condition_variable_any taken_;
  std::vector<Place> places_;  // a ring: of the batches from to_take_ on
  int64_t to_make_;
  int64_t to_take_;
  int64_t last_;
  std::vector<std::jthread> threads_;
};

}  // namespace sconce::data
