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

namespace sconce::data::detail {

/// Creates batches in threads, ahead of the loop that consumes them, and returns them in order.
/// This class implements the part of `DataLoader` that is independent of the item type, and it can
/// also be used on its own. The owner must retrieve all batches from a single thread. Each worker
/// runs with the thread state (grad mode and autocast) of the thread that constructed this object
/// and with a single LibTorch thread, because the workers already share the cores. The destructor
/// stops all threads and waits for any calls to `Make` that are in progress.
class ReadAhead {
 public:
  /// Creates the batch with the given index. A batch may have any type. After a stop request, the
  /// function may return null or throw immediately.
  using Make = std::function<std::shared_ptr<void>(int64_t index, const std::stop_token& stop)>;

  /// Starts a thread for each function in `workers`. The threads create the batches with indices
  /// `first` to `last - 1` and stay fewer than `ahead` batches ahead of the next batch to be
  /// returned.
  /// @throw c10::Error if `workers` is empty or `ahead` is below 1.
  ReadAhead(std::vector<Make> workers, int64_t ahead, int64_t first, int64_t last);

  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  /// Waits for the next batch and returns it, or returns null after the last batch.
  /// @throw any exception thrown while the batch was created, after which there are no more
  /// batches.
  std::shared_ptr<void> next();

 private:
  struct Place {
    bool is_made = false;
    std::shared_ptr<void> batch = {};
    std::exception_ptr error = {};
  };

  void work(const Make& make, const std::stop_token& stop);
  Place& place_of(int64_t index);

  std::mutex mutex_;  // guards the members below, except the threads
  std::condition_variable_any batch_made_;
  std::condition_variable_any batch_taken_;
  std::vector<Place> places_;  // ring buffer of the batches starting at next_to_take_
  int64_t next_to_make_;
  int64_t next_to_take_;
  int64_t last_;
  std::vector<std::jthread> threads_;
};

}  // namespace sconce::data::detail
