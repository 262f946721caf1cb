#pragma once

#include <chrono>

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

}  // namespace sconce
