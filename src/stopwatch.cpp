#include "sconce/stopwatch.hpp"

namespace sconce {

Stopwatch::Stopwatch(torch::Device device) : device_(device) {
  restart();
}

double Stopwatch::seconds() const {
  synchronize(device_);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Stopwatch::restart() {
  synchronize(device_);
  start_ = std::chrono::steady_clock::now();
}

}  // namespace sconce
