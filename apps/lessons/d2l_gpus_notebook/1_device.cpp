// Defines the notebook's helpers: cpu, gpu, num_gpus, try_gpu, and try_all_gpus.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>
#include <vector>

int main() {
  // T2.cores
  std::cout << "threads of an operation on cpu: " << torch::get_num_threads() << '\n';

  // T2.3
  auto cpu = [] { return torch::Device("cpu"); };

  auto gpu = [](int i = 0) { return torch::Device("cuda:" + std::to_string(i)); };

  std::cout << sconce::repr(std::tuple{cpu(), gpu(), gpu(1)}) << '\n';

  // T2.6
  auto num_gpus = [] { return int{torch::cuda::device_count()}; };
  std::cout << num_gpus() << '\n';

  // T2.8
  auto try_gpu = [&](int i = 0) {
    if (num_gpus() >= i + 1) return gpu(i);
    return cpu();
  };

  auto try_all_gpus = [&] {
    std::vector<torch::Device> devices;
    for (int i = 0; i < num_gpus(); ++i) devices.push_back(try_gpu(i));
    return devices;
  };

  std::cout << sconce::repr(std::tuple{try_gpu(), try_gpu(10), try_all_gpus()}) << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << "devices from try_all_gpus(): " << try_all_gpus().size()
            << ", from sconce::try_all_gpus(): " << sconce::try_all_gpus().size() << '\n';
  std::cout << "index 10 is GPU number " << gpu(10).index() + 1 << '\n';
}
