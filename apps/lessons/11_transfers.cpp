// Transfers: bytes per second to the device and back, beside the time of a product.
// Covers: T0.copy T1.slow T3.to
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::median_seconds, sconce::repr;

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);

  // note: T3 has tensors start on the CPU; one made with a device starts on that device.
  auto x = torch::rand({2048, 2048});
  auto on_device = x.to(device);
  std::cout << "values kept: " << repr(on_device.cpu().equal(x)) << '\n';
  std::cout << "the same tensor: " << repr(on_device.is_same(x)) << '\n';

  const auto speed = [&](const char* what, const std::function<void()>& work) {
    const auto bytes = static_cast<double>(x.nbytes());
    std::printf("~ %s: %.2f GB/s\n", what, bytes / median_seconds(work, device) / 1e9);
  };
  const auto copy = [](const torch::Tensor& from, torch::Device to) {
    return from.to(from.options().device(to), /*non_blocking=*/true, /*copy=*/true);
  };
  speed("to the device", [&] { copy(x, device); });
  speed("back to the CPU", [&] {
    copy(on_device, torch::kCPU);
    sconce::synchronize(device);
  });
  if (device.is_cpu()) {
    std::cout << "Without a GPU nothing is transferred: these are copies within the memory.\n";
  } else {
    auto pinned = x.pin_memory();
    speed("to the device from pinned memory", [&] { copy(pinned, device); });
    std::cout << "values kept: " << repr(copy(pinned, device).cpu().equal(x)) << '\n';
  }

  const double product = median_seconds([&] { torch::matmul(on_device, on_device); }, device, 3);
  std::printf("~ a product of the matrix with itself: %.3f ms\n", product * 1e3);
}
