#pragma once

#include <chrono>
#include <functional>

#include "sconce/devices.hpp"

namespace sconce {

/// Measures the wall time of work on a device. It waits for the device at the start and at the end,
/// because a GPU runs behind the program that queues its work. For the CPU it is a plain clock.
/// Python: d2l's `Timer`, with the missing `torch.cuda.synchronize()`.
class Stopwatch {
 public:
  /// Waits for `device`, then starts.
  /// @throw c10::Error under the same conditions as `synchronize(device)`.
  explicit Stopwatch(torch::Device device = cpu());

  /// Waits for the device and returns the seconds since the start. The stopwatch keeps running.
  double seconds() const;

  /// Waits for the device and starts again from zero.
  void restart();

 private:
  torch::Device device_;
  std::chrono::steady_clock::time_point start_;
};

/// Returns the median wall time in seconds of `runs` calls of `work`. One call before them is not
/// counted, because it also pays for memory, threads and the choice of kernels. Each call is waited
/// for, so the time covers queueing the work, doing it and waiting for its end. For work of a few
/// microseconds this is more than its share of a row of calls. Python's
/// `torch.utils.benchmark.Timer` instead waits once for a block of calls and divides; the block is
/// long enough to hide the cost of the clock.
/// @throw c10::Error if `runs` is below 1, or under the same conditions as `synchronize(device)`.
/// Passes on what `work` throws.
double median_seconds(const std::function<void()>& work, torch::Device device = cpu(),
                      int runs = 9);

}  // namespace sconce
