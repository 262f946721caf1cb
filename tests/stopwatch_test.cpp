#include "sconce/stopwatch.hpp"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <string>
#include <thread>

#include "catch.hpp"
#include "support/require_gpu.hpp"

using std::chrono::milliseconds;

namespace {

// Replaces the GPUs with a single GPU that records each synchronization, for the lifetime of the
// object.
class RecordingGpu : public c10::impl::NoOpDeviceGuardImpl<c10::kCUDA> {
 public:
  explicit RecordingGpu(std::string& events) : events_(events), previous_(slot().exchange(this)) {}
  ~RecordingGpu() { slot() = previous_; }
  RecordingGpu(const RecordingGpu&) = delete;
  RecordingGpu& operator=(const RecordingGpu&) = delete;

  void synchronizeDevice(const c10::DeviceIndex) const override { events_ += " wait"; }

 private:
  static std::atomic<const c10::impl::DeviceGuardImplInterface*>& slot() {
    return c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kCUDA)];
  }

  std::string& events_;
  const c10::impl::DeviceGuardImplInterface* previous_;
};

}  // namespace

TEST_CASE("a stopwatch measures seconds and keeps running after it is read") {
  const sconce::Stopwatch stopwatch;
  std::this_thread::sleep_for(milliseconds(20));
  const double first = stopwatch.seconds();
  CHECK(first >= 0.020);
  CHECK(first < 20);
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(stopwatch.seconds() >= first + 0.005);
}

TEST_CASE("restart resets a stopwatch to zero") {
  sconce::Stopwatch stopwatch;
  std::this_thread::sleep_for(milliseconds(20));
  const sconce::Stopwatch before;
  stopwatch.restart();
  const double seconds = stopwatch.seconds();
  CHECK(seconds <= before.seconds());
}

TEST_CASE("a stopwatch rejects a device that does not exist") {
  CHECK_THROWS_AS(sconce::Stopwatch(sconce::gpu(127)), c10::Error);
}

TEST_CASE("median_seconds ignores the first call and slow outliers", "[alone]") {
  for (const int runs : {1, 2, 5}) {
    int calls = 0;
    const double seconds = sconce::median_seconds(
        [&] { std::this_thread::sleep_for(milliseconds(calls++ == 0 ? 300 : 2)); }, sconce::cpu(),
        runs);
    CHECK(calls == runs + 1);
    CHECK(seconds >= 0.002);
    CHECK(seconds < 0.200);
  }
  int calls = 0;  // the median of two values is their mean
  CHECK(sconce::median_seconds(
            [&] { std::this_thread::sleep_for(milliseconds(calls++ == 1 ? 200 : 0)); },
            sconce::cpu(), 2) >= 0.1);
  CHECK_THROWS_WITH(
      sconce::median_seconds([] {}, sconce::cpu(), 0),
      Catch::Matchers::ContainsSubstring("sconce::median_seconds: expected at least 1 run, got 0"));
  CHECK_THROWS_AS(sconce::median_seconds([] {}, sconce::gpu(127)), c10::Error);
}

TEST_CASE(
    "timers synchronize the GPU before and after each timed call, but not before the warm-up call",
    "[alone]") {
  std::string events;
  const RecordingGpu gpu(events);
  sconce::Stopwatch stopwatch(sconce::gpu());
  events += " work";
  CHECK(stopwatch.seconds() >= 0);
  stopwatch.restart();
  CHECK(events == " wait work wait wait");

  events.clear();
  sconce::median_seconds([&] { events += " work"; }, sconce::gpu(), 3);
  CHECK(events == " work wait work wait wait work wait wait work wait");
}

TEST_CASE("a stopwatch waits for an unfinished copy from a GPU", "[gpu]") {
  sconce::test::require_gpu();
  const auto ones = torch::ones({1 << 20}, sconce::gpu());
  auto copied = torch::zeros({1 << 20}).pin_memory();
  const sconce::Stopwatch stopwatch(sconce::gpu());
  copied.copy_(ones, /*non_blocking=*/true);
  CHECK(stopwatch.seconds() > 0);
  CHECK(copied.sum().item<double>() == 1 << 20);
}

// Simulated GPUs run each operation inside the call that launches it.
TEST_CASE("a stopwatch measures the GPU's execution time, not the launch time", "[gpu][real-gpu]") {
  sconce::test::require_gpu();
  const auto device = sconce::gpu();
  auto x = torch::rand({4096, 4096}, device);
  x = torch::mm(x, x);  // the first product loads libraries
  sconce::synchronize(device);
  const sconce::Stopwatch host;
  const sconce::Stopwatch gpu(device);
  for (int i = 0; i < 50; ++i) x = torch::mm(x, x).div_(4096);
  const double asking = host.seconds();
  CHECK(gpu.seconds() > 3 * asking);
}
