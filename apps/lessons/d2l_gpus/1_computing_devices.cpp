// Creates CPU and GPU devices, counts the GPUs, and selects a GPU only if it exists.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

int main() {
  // T1.cores
  std::cout << "threads of an operation on cpu: " << torch::get_num_threads() << '\n';
  std::cout << "a tensor on cpu:1 is on "
            << torch::ones(1, torch::Device("cpu:1")).device() << '\n';

  // T1.card
  for (int i = 0; i < torch::cuda::device_count(); ++i) {
    auto device = torch::Device("cuda:" + std::to_string(i));
    auto card = sconce::cuda::get_device_properties(device);
    std::cout << device << ": " << card.name << ", " << card.total_memory << " bytes\n";
    auto x = torch::ones({1024, 1024}, device);
    for (int j = 0; j < torch::cuda::device_count(); ++j)
      std::cout << "  with x on " << x.device() << ", cuda:" << j << " holds "
                << sconce::cuda::memory_stats(sconce::gpu(j)).allocated << " bytes\n";
  }
  if (torch::cuda::device_count() < 2) std::cout << "needs two GPUs to compare cards\n";

  // T1.zero
  std::cout << "cuda equals cuda:0: "
            << sconce::repr(torch::Device("cuda") == torch::Device("cuda:0")) << '\n';
  try {
    std::cout << torch::Device("gpu:0") << " is a device\n";
  } catch (const c10::Error&) {
    std::cout << "gpu:0 is not a device name\n";
  }

  // T1.devices
  std::cout << sconce::repr(std::tuple{torch::Device("cpu"), torch::Device("cuda"),
                                       torch::Device("cuda:1")})
            << '\n';

  // T1.count
  std::cout << int{torch::cuda::device_count()} << '\n';

  // T1.try
  auto try_gpu = [](int i = 0) {
    if (torch::cuda::device_count() >= i + 1)
      return torch::Device("cuda:" + std::to_string(i));
    return torch::Device("cpu");
  };

  auto try_all_gpus = [] {
    std::vector<torch::Device> devices;
    for (int i = 0; i < torch::cuda::device_count(); ++i)
      devices.push_back(torch::Device("cuda:" + std::to_string(i)));
    return devices.empty() ? std::vector{torch::Device("cpu")} : devices;
  };

  std::cout << sconce::repr(std::tuple{try_gpu(), try_gpu(10), try_all_gpus()}) << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  for (int i = 0; i < torch::cuda::device_count(); ++i) {
    c10::DeviceGuard guard(sconce::gpu(i));
    std::cout << "with GPU " << i << " as the current one, a tensor on cuda is on "
              << torch::ones(1, torch::Device("cuda")).device() << '\n';
  }
  auto available = torch::get_num_threads();
  auto x = torch::ones({500, 500});
  for (auto threads : {1, available}) {
    torch::set_num_threads(threads);
    auto seconds = sconce::median_seconds([&] { torch::matmul(x, x); });
    std::printf("~ time of a product: %.2f ms with %d of %d threads\n", seconds * 1e3,
                threads, available);
  }
}
