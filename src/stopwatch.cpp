#include "sconce/stopwatch.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "host_call.hpp"

namespace sconce {

Stopwatch::Stopwatch(torch::Device device) : device_(device) {
  restart();
}

double Stopwatch::seconds() const {
  synchronize(device_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Stopwatch::restart() {
  detail::check_not_capturing("sconce::Stopwatch::restart");
  synchronize(device_);
  start_ = std::chrono::steady_clock::now();
}

double median_seconds(const std::function<void()>& work, torch::Device device, int runs) {
  TORCH_CHECK(runs >= 1, "sconce::median_seconds: expected at least 1 run, got ", runs);
  work();
  std::vector<double> seconds(static_cast<size_t>(runs));
  for (double& run : seconds) {
    const Stopwatch stopwatch(device);
    work();
    run = stopwatch.seconds();
  }
  std::sort(seconds.begin(), seconds.end());
  return (seconds[(seconds.size() - 1) / 2] + seconds[seconds.size() / 2]) / 2;
}

}  // namespace sconce
