// Exercise 1: products of small and large matrices, on the CPU and on the GPU.
// Covers: T0.E1 T1.E1
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::median_seconds, sconce::repr;

void beyond(torch::Device device);

int main() {
  torch::manual_seed(0);

  // T0.E1, T1.E1
  std::vector<torch::Device> devices = {sconce::cpu()};
  if (sconce::num_gpus() > 0) devices.push_back(sconce::gpu());
  for (const int64_t n : {4, 64, 256, 1024}) {
    auto a = torch::randn({n, n}), b = torch::randn({n, n});
    for (const auto device : devices) {
      auto x = a.to(device), y = b.to(device);
      const auto multiply = [&] { return torch::matmul(x, y); };
      const double seconds = median_seconds(multiply, device);
      auto z = multiply();
      std::cout << n << " on " << device << ": z[0][1] = " << repr(z[0][1].item<double>())
                << '\n';
      std::printf("~ %.3f ms, %.2f GFLOP/s\n", seconds * 1e3, 2e-9 * n * n * n / seconds);
    }
  }

  beyond(devices.back());
}

// Beyond the exercise: the transfers, and from which size on they are worth it.
void beyond(torch::Device device) {
  // note: the exercise sets no measure. A rate is FLOP/s, and no interface tells a device's limit,
  // so the best of this run stands for it.
  double best = 0;
  int64_t wins = 0;
  std::cout << "~ transfers in the whole time:";
  for (const int64_t n : {4, 64, 256, 1024}) {
    auto a = torch::randn({n, n}), b = torch::randn({n, n});
    auto x = a.to(device), y = b.to(device);
    const double on_cpu = median_seconds([&] { torch::matmul(a, b); });
    const double product = median_seconds([&] { torch::matmul(x, y); }, device);
    const double whole =
        median_seconds([&] { torch::matmul(a.to(device), b.to(device)).cpu(); }, device);
    best = std::max(best, 2e-9 * n * n * n / product);
    wins = whole > on_cpu ? 0 : wins > 0 ? wins : n;
    std::printf(" %.2f", 1 - product / whole);
  }
  std::printf("\n~ the best rate: %.2f GFLOP/s\n", best);
  if (device.is_cpu())
    std::cout << "There is no GPU here to compare with.\n";
  else
    std::cout << "~ GPU wins from n = " << wins << " (0: never)\n";
}
