// Lists the machine's GPUs and checks whether LibTorch can use them.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <optional>
#include <string>

std::string mebibytes(std::optional<int64_t> bytes) {
  return bytes ? std::to_string(*bytes / (1 << 20)) + " MiB" : "[N/A]";
}

std::string percent(std::optional<int> value) {
  return value ? std::to_string(*value) + " %" : "[N/A]";
}

int main() {
  // T1.smi
  auto driver = sconce::environment().driver;
  for (size_t i = 0; i < driver.gpus.size(); ++i) {
    auto& gpu = driver.gpus[i];
    std::cout << "GPU " << i << ", " << gpu.name << ", " << driver.version << ", "
              << mebibytes(gpu.memory_total) << '\n';
    std::cout << "~ GPU " << i << ", " << mebibytes(gpu.memory_used) << ", "
              << percent(gpu.utilization) << '\n';
  }
  if (driver.gpus.empty()) std::cout << "The NVIDIA driver reports no GPU.\n";

  // T1.build
  auto is_built = sconce::environment().torch.built_with_cuda;
  auto is_available = torch::cuda::is_available();
  std::cout << "built for CUDA: " << sconce::repr(is_built) << '\n';
  std::cout << "a GPU can be used: " << sconce::repr(is_available) << '\n';
  if (!is_built) {
    std::cout << "This is a CPU build, so no driver or GPU can change the answer.\n";
  } else if (!is_available) {
    std::cout << "This is a CUDA build, but this process has no usable GPU.\n";
  }

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << "GPUs in the machine: " << driver.gpus.size() << '\n';
  std::cout << "GPUs that this process can use: " << int{torch::cuda::device_count()}
            << '\n';
  for (int i = 0; i < torch::cuda::device_count(); ++i) {
    auto properties = sconce::cuda::get_device_properties(sconce::gpu(i));
    std::cout << sconce::gpu(i) << ": " << properties.name << ", "
              << properties.total_memory << " bytes\n";
  }
}
