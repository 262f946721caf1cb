// Asynchronous work: a product returns before it is done, and synchronize waits for its end.
// Covers: T3.async
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <torch/csrc/profiler/util.h>
#include <cstdio>

using sconce::repr;

// Waits for the device and counts that it did: on the CPU too, where nothing is queued.
int waits = 0;
void wait(torch::Device device) {
  sconce::synchronize(device), ++waits;
}

// Adds up the floating-point operations of the products that run.
int64_t flops = 0;
std::unique_ptr<at::ObserverContext> count_flops(const at::RecordFunction& call) {
  namespace profiler = torch::profiler::impl;
  flops += profiler::computeFlops(call.name(), profiler::saveExtraArgs(call));
  return nullptr;
}

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto x = torch::randn({2000, 1000}, device), y = torch::randn({1000, 2000}, device);
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(count_flops).needsInputs(true));
  torch::matmul(x, y);  // a warm-up
  at::removeCallback(handle);
  wait(device);

  // T3.async
  // note: the text has several operations run "at once". One stream runs them in order; it is the
  // host that does not wait for them.
  const sconce::Stopwatch stopwatch;  // a plain clock: it waits for no GPU
  auto z = torch::matmul(x, y);
  const double returned = stopwatch.seconds();
  wait(device);
  const double finished = stopwatch.seconds();

  std::printf("~ the call returned after %.3f ms\n", returned * 1e3);
  std::printf("~ the product was done after %.3f ms\n", finished * 1e3);
  std::printf("the time of the call lies within that of the product: %s\n",
              repr(returned <= finished).c_str());
  std::printf("waits, after the warm-up and after the call: %d\n", waits);
  std::printf("floating-point operations: %lld\n", static_cast<long long>(flops));
  std::printf("result: %s on %s\n", repr(z.sizes()).c_str(), z.device().str().c_str());
  // The rows count by their place, so that an exchange shows.
  std::printf("checksum: %.4e\n", z.cpu().cumsum(0, torch::kDouble).sum().item<double>());
  if (device.is_cpu()) std::printf("On the CPU a call returns when its work is done.\n");
}
