// Shows which GPUs the driver reports, and whether LibTorch can use one of them.
#include <sconce/report/environment.hpp>

#include <iostream>
#include <optional>
#include <string>

std::string mebibytes(std::optional<int64_t> bytes) {
  return bytes ? std::to_string(*bytes / (1 << 20)) + " MiB" : "[N/A]";
}

// T0.smi
void nvidia_smi() {
  auto driver = sconce::environment().driver;
  for (size_t i = 0; i < driver.gpus.size(); ++i) {
    auto gpu = driver.gpus[i];
    std::cout << "GPU " << i << ", " << gpu.name << ", " << driver.version << ", "
              << mebibytes(gpu.memory_total) << '\n';
    std::cout << "~ GPU " << i << ", " << mebibytes(gpu.memory_used) << ", "
              << (gpu.utilization ? std::to_string(*gpu.utilization) + " %" : "[N/A]")
              << '\n';
  }
  if (driver.gpus.empty()) std::cout << "nvidia-smi shows no GPU on this machine\n";
}

// T0.import
#include <torch/torch.h>
#include <sconce/sconce.hpp>

namespace nn = torch::nn;

int main() {
  nvidia_smi();

  // T0.build
  bool is_built = sconce::environment().torch.built_with_cuda;
  bool is_available = torch::cuda::is_available();
  std::cout << "built for CUDA: " << sconce::repr(is_built) << '\n';
  std::cout << "a GPU can be used: " << sconce::repr(is_available) << '\n';
  if (!is_built)
    std::cout << "This is a CPU build: neither a driver nor a GPU changes that.\n";
  else if (!is_available)
    std::cout << "This is a CUDA build, but this process has no usable GPU.\n";
  else
    std::cout << "This is a CUDA build, and it can use a GPU.\n";

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << "GPUs for this process: " << sconce::num_gpus() << '\n';
  for (int i = 0; i < sconce::num_gpus(); ++i) {
    auto gpu = sconce::cuda::get_device_properties(sconce::gpu(i));
    std::cout << sconce::gpu(i) << ": " << gpu.name << ", " << gpu.total_memory
              << " bytes\n";
  }
}
