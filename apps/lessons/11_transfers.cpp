// Transfers: bytes per second to the device and back, beside the time of a product.
// Covers: T0.copy T1.slow T3.to
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::median_seconds, sconce::repr;

void beyond(const torch::Tensor& x, const torch::Tensor& x_gpu);

int main() {
  torch::manual_seed(0);

  // T0.copy, T1.slow, T3.to
  auto x = torch::randn({2048, 1024});
  auto x_gpu = x.to(sconce::try_gpu());
  auto x_cpu = x_gpu.cpu();
  std::cout << x.device() << " to " << x_gpu.device() << " and back to " << x_cpu.device()
            << ", " << x.nbytes() << " bytes each way\n";
  std::cout << "values kept: " << repr(x_cpu.equal(x)) << '\n';

  beyond(x, x_gpu);
}

// Beyond the cells: what a copy costs beside the work that it is for.
void beyond(const torch::Tensor& x, const torch::Tensor& x_gpu) {
  const auto device = x_gpu.device();
  // note: T3 has tensors start on the CPU; one that is made with a device starts on that device.
  std::cout << "made there: " << torch::ones({2, 3}, device).device() << '\n';

  const auto multiply = [&] { return torch::matmul(x_gpu, x_gpu.t()); };
  const auto to_gpu = [&] { return x.to(device, /*non_blocking=*/false, /*copy=*/true); };
  const auto to_cpu = [&] { return x_gpu.to(torch::kCPU, false, /*copy=*/true); };
  const double gigabytes = static_cast<double>(x.nbytes()) / 1e9;
  std::cout << "product: " << repr(multiply().sizes()) << '\n';
  std::printf("~ to the device %.2f GB/s, back %.2f GB/s, the product %.3f ms\n",
              gigabytes / median_seconds(to_gpu, device),
              gigabytes / median_seconds(to_cpu, device),
              median_seconds(multiply, device) * 1e3);
  if (device.is_cuda()) {
    auto pinned = x.pin_memory();
    const auto from_pinned = [&] { return pinned.to(device, /*non_blocking=*/true); };
    std::cout << "values kept: " << repr(from_pinned().cpu().equal(x)) << '\n';
    std::printf("~ from pinned memory %.2f GB/s\n",
                gigabytes / median_seconds(from_pinned, device));
  } else {
    std::cout << "Without a GPU nothing is transferred: these are copies in memory.\n";
  }
}
