// Exercise 1: products of small and large matrices, on the CPU and on the GPU.
// Covers: T0.E1 T1.E1
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <torch/csrc/profiler/util.h>
#include <algorithm>
#include <cstdio>
#include <vector>

using sconce::repr;

// Waits for the device and counts that it did: on the CPU too, where nothing is queued.
int waits = 0;
void wait(torch::Device device) {
  sconce::synchronize(device), ++waits;
}

// Adds up the floating-point operations of the products that run.
long long flops = 0;
std::unique_ptr<at::ObserverContext> count_flops(const at::RecordFunction& call) {
  namespace profiler = torch::profiler::impl;
  flops += profiler::computeFlops(call.name(), profiler::saveExtraArgs(call));
  return nullptr;
}

// Medians of nine runs after a warm-up: of the product, and with the transfers.
struct Row {
  double seconds, seconds_with_transfers, rate;  // FLOP/s
};

Row measure(torch::Device device, int64_t n) {
  torch::manual_seed(0);
  auto a = torch::randn({n, n}), b = torch::randn({n, n});
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(count_flops).needsInputs(true));
  waits = flops = 0;
  auto z = torch::matmul(a.to(device), b.to(device)).cpu();
  at::removeCallback(handle);

  bool within = true;
  std::vector<double> product(9), whole(9);
  for (size_t run = 0; run < 9; ++run) {
    const sconce::Stopwatch around;  // a plain clock: it waits for no GPU
    auto c = a.to(device), d = b.to(device);
    wait(device);
    const sconce::Stopwatch inside;
    z = torch::matmul(c, d);
    wait(device);
    product[run] = inside.seconds();
    auto back = z.cpu();
    whole[run] = around.seconds();
    within &= product[run] <= whole[run];
  }
  std::sort(product.begin(), product.end());
  std::sort(whole.begin(), whole.end());
  std::printf("n = %lld, %s\n  the product's time lies within that with transfers: %s\n",
              static_cast<long long>(n), z.device().str().c_str(), repr(within).c_str());
  // The rows count by their place, so that an exchange shows.
  std::printf("  waits %d, floating-point operations %lld\n  checksum %.4e\n", waits,
              flops, z.cpu().cumsum(0, torch::kDouble).sum().item<double>());
  std::printf("~ %.3f ms, %.2f GFLOP/s, transfers %.2f of the whole\n", product[4] * 1e3,
              flops / product[4] / 1e9, 1 - product[4] / whole[4]);
  return {product[4], whole[4], flops / product[4]};
}

int main() {
  const auto device = sconce::try_gpu();
  long long wins = 0;  // from this size on the GPU is faster with its transfers
  double best_on_cpu = 0, best_on_gpu = 0;
  for (const int64_t n : {4, 64, 256, 1024}) {  // T0.E1, T1.E1
    const auto on_cpu = measure(torch::kCPU, n);
    best_on_cpu = std::max(best_on_cpu, on_cpu.rate);
    if (device.is_cpu()) continue;
    const auto on_gpu = measure(device, n);
    best_on_gpu = std::max(best_on_gpu, on_gpu.rate);
    wins = on_gpu.seconds_with_transfers > on_cpu.seconds ? 0 : wins > 0 ? wins : n;
  }

  std::puts("A small product takes the time of its call, a large one that of its work.");
  // note: the exercise sets no measure. A rate is FLOP/s, and no interface tells a device's limit,
  // so the best of this run on each device stands for it.
  std::printf("~ the best on the CPU: %.2f GFLOP/s\n", best_on_cpu / 1e9);
  if (device.is_cpu()) {
    std::printf("There is no GPU here to compare with.\n");
  } else {
    std::printf("~ the best on the GPU: %.2f GFLOP/s\n", best_on_gpu / 1e9);
    std::printf("~ the GPU wins from n = %lld (0: never)\n", wins);
  }
}
