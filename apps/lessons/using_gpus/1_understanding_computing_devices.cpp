// Defines the tutorial's device functions and uses them with this machine's GPUs.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>
#include <vector>

int main() {
  // T0.cpu-gpu
  auto cpu = [] { return torch::Device("cpu"); };
  auto gpu = [](int i = 0) { return torch::Device("cuda:" + std::to_string(i)); };

  // T0.num_gpus
  auto num_gpus = [] { return int{torch::cuda::device_count()}; };
  std::cout << "Number of available GPUs: " << num_gpus() << '\n';

  // T0.try
  auto try_gpu = [&](int i = 0) {
    if (num_gpus() >= i + 1) return gpu(i);
    return cpu();
  };
  auto try_all_gpus = [&] {
    std::vector<torch::Device> devices;
    for (int i = 0; i < num_gpus(); ++i) devices.push_back(gpu(i));
    return devices;
  };
  std::cout << "First GPU: " << try_gpu() << '\n';
  std::cout << "Tenth GPU (falls back to CPU): " << try_gpu(10) << '\n';
  std::cout << "All GPUs: " << sconce::repr(try_all_gpus()) << '\n';

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << "the first is a GPU: " << sconce::repr(try_gpu().is_cuda()) << '\n';
  std::cout << "gpu(10) is GPU number " << gpu(10).index() + 1 << '\n';
  std::cout << "sconce::try_all_gpus(): " << sconce::repr(sconce::try_all_gpus()) << '\n';
}
