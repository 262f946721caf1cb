#pragma once

#include <chrono>
#include <functional>

#include "sconce/devices.hpp"

namespace sconce {

/// Measures the wall-clock time of work on a device. A GPU runs asynchronously, so the stopwatch
/// waits for the device at the start and at the end. On the CPU, the stopwatch never waits.
///
///     Stopwatch watch(device);
///     train(...);
///     const double seconds = watch.seconds();
///
/// Python: d2l's `Timer`, which does not call the required `torch.cuda.synchronize()`.
class Stopwatch {
 public:
  /// Waits for `device`, and then starts the stopwatch.
  /// @throw c10::Error under the same conditions as `synchronize(device)`.
  explicit Stopwatch(torch::Device device = cpu());

  /// Waits for the device and returns the number of seconds since the start. The stopwatch keeps
  /// running.
  double seconds() const;

  /// Waits for the device and restarts from zero.
  void restart();

 private:
  torch::Device device_;
  std::chrono::steady_clock::time_point start_;
};

/// Returns the median wall-clock time, in seconds, of `runs` calls to `work`. One warmup call is
/// not timed, because it includes memory allocation, thread creation, and kernel selection. The
/// function waits for each call to finish, so the time includes queueing the work, running it, and
/// waiting for completion. If `work` takes only a few microseconds, this time is longer than the
/// average time per call in a sequence of calls. In contrast, Python's
/// `torch.utils.benchmark.Timer` waits once for a block of calls and divides the elapsed time by
/// the number of calls. The block contains enough calls to hide the overhead of reading the clock.
/// Exceptions thrown by `work` are propagated.
/// @throw c10::Error if `runs` is below 1, or under the same conditions as `synchronize(device)`.
double median_seconds(const std::function<void()>& work, torch::Device device = cpu(),
                      int runs = 9);

}  // namespace sconce
