#pragma once

#include <chrono>
#include <functional>

#include "sconce/devices.hpp"

namespace sconce {

/// Measures the wall-clock time of work on a device. A GPU runs asynchronously, so the stopwatch
/// waits for the device at the start and at the end. For the CPU it is a plain clock.
///
///     Stopwatch watch(device);
///     train(...);
///     const double seconds = watch.seconds();
///
/// Python: d2l's `Timer`, with the missing `torch.cuda.synchronize()`.
class Stopwatch {
 public:
  /// Waits for `device`, then starts.
  /// @throw c10::Error under the same conditions as `synchronize(device)`.
  explicit Stopwatch(torch::Device device = cpu());

  /// Waits for the device and returns the seconds since the start. The stopwatch keeps running.
  double seconds() const;

  /// Waits for the device and restarts from zero.
  void restart();

 private:
  torch::Device device_;
  std::chrono::steady_clock::time_point start_;
};

/// Returns the median wall-clock time of `runs` calls of `work`, in seconds. One call before them
/// is not timed, because it also pays for memory allocation, threads, and kernel selection. The
/// function waits for each call to finish, so the time covers queueing the work, running it, and
/// waiting for its end. For work of a few microseconds, this is more than one call takes in a
/// sequence of calls. Python's `torch.utils.benchmark.Timer` instead waits once for a block of
/// calls and divides by their number; the block is long enough to hide the cost of the clock.
/// Exceptions thrown by `work` are passed on.
/// @throw c10::Error if `runs` is below 1, or under the same conditions as `synchronize(device)`.
double median_seconds(const std::function<void()>& work, torch::Device device = cpu(),
                      int runs = 9);

}  // namespace sconce
