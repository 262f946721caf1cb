// Follows a tensor from the CPU to the GPU, through a product, and back.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <functional>
#include <iostream>
#include <vector>

int main() {
  torch::manual_seed(0);

  // T3.to
  auto tensor = torch::tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  std::cout << "created on " << tensor.device() << '\n';
  tensor = torch::cuda::is_available() ? tensor.to("cuda") : tensor;  // guard
  std::cout << "moved to " << tensor.device() << '\n';
  auto result = torch::matmul(tensor, tensor.t());
  std::cout << "computed on " << result.device() << '\n';
  auto retrieved = result.cpu();
  std::cout << "retrieved to " << retrieved.device() << '\n';

  // T3.auto
  std::cout << sconce::repr(result) << '\n';
  std::cout << sconce::repr(result.sum().item<double>()) << '\n';
  auto on_cpu = result.flatten().cpu();
  auto data = on_cpu.data_ptr<float>();
  std::cout << sconce::repr(std::vector<double>(data, data + on_cpu.numel())) << '\n';
  if ((result.sum() > 0).item<bool>()) std::cout << "the sum is positive\n";

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  auto device = result.device();
  try {
    auto sum = result + retrieved;
    std::cout << "result + retrieved is on " << sum.device() << '\n';
  } catch (const c10::Error&) {
    std::cout << "result + retrieved fails: the operands are on different devices\n";
  }
  std::cout << "created with a device: " << torch::ones({2, 3}, device).device() << '\n';

  auto x = torch::randn({1024, 1024});
  auto x_gpu = x.to(device);
  auto pinned = device.is_cuda() ? x.pin_memory() : x;
  auto copy_there = [&] { x.to(device, /*non_blocking=*/false, /*copy=*/true); };
  auto copy_pinned = [&] { pinned.to(device, /*non_blocking=*/true, /*copy=*/true); };
  auto copy_back = [&] { x_gpu.to("cpu", /*non_blocking=*/false, /*copy=*/true); };
  auto multiply = [&] { torch::matmul(x_gpu, x_gpu); };
  auto report = [&](const char* what, const std::function<void()>& work) {
    const double seconds = sconce::median_seconds(work, device);
    std::printf("~ %s: %.3f ms\n", what, seconds * 1e3);
  };
  std::cout << "copied " << x.nbytes()
            << " bytes, equal: " << sconce::repr(x_gpu.cpu().equal(x)) << '\n';
  report("copy to the device", copy_there);
  report("copy from pinned memory", copy_pinned);
  report("copy back", copy_back);
  report("product", multiply);
  if (device.is_cpu()) std::cout << "Without a GPU, these copies stay in CPU memory.\n";
}
