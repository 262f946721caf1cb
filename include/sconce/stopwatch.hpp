#pragma once

#include <chrono>
#include <functional>

#include "sconce/devices.hpp"

namespace sconce {

/// Measures wall time around work on a device. It waits for the device at both ends, since a GPU
/// runs behind the program that feeds it; for the CPU it is a plain clock.
/// Python: d2l's `Timer`, with the missing `torch.cuda.synchronize()`.
class Stopwatch {
 public:
  /// Waits for `device`, then starts.
  /// @throw c10::Error as `synchronize(device)` does.
  explicit Stopwatch(torch::Device device = cpu());

  /// Waits for the device and returns the seconds since the start. The watch runs on.
  double seconds() const;

  /// Waits for the device and starts anew from zero.
  void restart();

 private:
  torch::Device device_;
  std::chrono::steady_clock::time_point start_;
};

/// Returns the median wall time of `runs` calls of `work`, in seconds, after one call that is not
/// counted: it pays for memory, threads and the choice of kernels. Each call is waited for: the time
/// is that of asking for the work, doing it and hearing of its end. For work of microseconds that is
/// more than it takes in a row of calls. Python's `torch.utils.benchmark.Timer` waits once for a
/// block of calls, as many as hide the cost of the clock, and divides.
/// @throw c10::Error if `runs` is below 1, or as `synchronize(device)` does; else what `work`
/// throws.
double median_seconds(const std::function<void()>& work, torch::Device device = cpu(),
                      int runs = 9);

}  // namespace sconce
