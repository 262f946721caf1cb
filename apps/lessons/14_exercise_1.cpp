// Exercise 1: products of small and large matrices, on the CPU and on the GPU.
// Covers: T0.E1 T1.E1
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::median_seconds, sconce::repr;

int main() {
  torch::manual_seed(0);
  const auto device = sconce::try_gpu();
  double best = 0;
  int64_t wins = 0;

  // T0.E1, T1.E1
  // note: the exercise sets no measure. A rate is FLOP/s, and no interface tells a device's limit,
  // so the best of this run stands for it.
  for (const int n : {4, 64, 256, 1024}) {
    auto x = torch::randn({n, n}), y = torch::randn({n, n});
    auto x_gpu = x.to(device), y_gpu = y.to(device);
    const auto on_cpu = [&] { return torch::matmul(x, y); };
    const auto on_gpu = [&] { return torch::matmul(x_gpu, y_gpu); };
    const auto whole = [&] { return torch::matmul(x.to(device), y.to(device)).cpu(); };
    const double cpu_time = median_seconds(on_cpu);
    const double gpu_time = median_seconds(on_gpu, device);
    const double whole_time = median_seconds(whole, device);
    const double rate = 2e-9 * n * n * n / gpu_time;
    std::cout << n << ": z[0][1] = " << repr(on_cpu()[0][1].item<double>()) << ", on "
              << device << ' ' << repr(on_gpu()[0][1].item<double>()) << '\n';
    std::printf("~ %.3f ms, there %.3f ms, %.2f GFLOP/s, %.2f of the whole transfers\n",
                cpu_time * 1e3, gpu_time * 1e3, rate, 1 - gpu_time / whole_time);
    best = std::max(best, rate);
    wins = whole_time > cpu_time ? 0 : wins > 0 ? wins : n;
  }

  std::printf("~ the best rate: %.2f GFLOP/s\n", best);
  if (device.is_cpu())
    std::cout << "There is no GPU here to compare with: both are the CPU.\n";
  else
    std::cout << "~ GPU wins from n = " << wins << " (0: never)\n";
}
