// Times copies to the device and back, and the product that needs the copied data.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda:0" : "cpu");

  // T0.copy
  auto x = torch::randn({2048, 1024});
  auto x_gpu = x.to(device);
  auto x_cpu = x_gpu.cpu();
  std::cout << x.device() << " to " << x_gpu.device() << " and back to " << x_cpu.device()
            << ", " << x.nbytes() << " bytes each way\n";
  std::cout << "values kept: " << sconce::repr(x_cpu.equal(x)) << '\n';

  auto to_gpu = [&] { return x.to(device, /*non_blocking=*/false, /*copy=*/true); };
  auto to_cpu = [&] { return x_gpu.to(torch::kCPU, false, /*copy=*/true); };
  auto multiply = [&] { return torch::matmul(x_gpu, x_gpu.t()); };
  std::cout << "product: " << sconce::repr(multiply().sizes()) << '\n';
  std::printf("~ to %s %.3f ms, back %.3f ms, the product %.3f ms\n",
              device.str().c_str(), sconce::median_seconds(to_gpu, device) * 1e3,
              sconce::median_seconds(to_cpu, device) * 1e3,
              sconce::median_seconds(multiply, device) * 1e3);
  if (device.is_cpu())
    std::cout << "Without a GPU, nothing is transferred: these are copies in memory.\n";

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << "created there: " << torch::ones({2, 3}, device).device() << '\n';
  if (device.is_cuda()) {
    auto pinned = x.pin_memory();
    auto from_pinned = [&] { return pinned.to(device, /*non_blocking=*/true); };
    std::cout << "values kept: " << sconce::repr(from_pinned().cpu().equal(x)) << '\n';
    std::printf("~ from pinned memory %.3f ms\n",
                sconce::median_seconds(from_pinned, device) * 1e3);
  }
}
