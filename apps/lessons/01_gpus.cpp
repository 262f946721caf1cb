// The machine's GPUs: which there are, with what memory, and how busy they are.
// Covers: T0.smi T1.smi T2.1
#include <sconce/sconce.hpp>

#include <iostream>
#include <optional>
#include <string>

std::string mebibytes(std::optional<int64_t> bytes) {
  return bytes ? std::to_string(*bytes / (1 << 20)) + " MiB" : "[N/A]";
}

void beyond(size_t num_gpus_of_machine);

int main() {
  // T0.smi, T1.smi, T2.1
  // note: the tutorials print nvidia-smi's table. The facts come from the same library of the
  // driver, NVML, without starting a program.
  const auto driver = sconce::environment().driver;
  for (size_t i = 0; i < driver.gpus.size(); ++i) {
    const auto& gpu = driver.gpus[i];
    std::cout << "GPU " << i << ", " << gpu.name << ", " << driver.version << ", "
              << mebibytes(gpu.memory_total) << '\n';
    std::cout << "~ GPU " << i << ", " << mebibytes(gpu.memory_used) << ", "
              << (gpu.utilization ? std::to_string(*gpu.utilization) + " %" : "[N/A]")
              << '\n';
  }
  if (driver.gpus.empty()) std::cout << "nvidia-smi shows no GPU on this machine\n";

  beyond(driver.gpus.size());
}

// Beyond the cells: the driver also lists hidden GPUs, so LibTorch is asked for its own.
void beyond(size_t num_gpus_of_machine) {
  std::cout << "Beyond the cells:\n";
  std::cout << "GPUs of the machine: " << num_gpus_of_machine << '\n';
  std::cout << "GPUs for this process: " << sconce::num_gpus() << '\n';
  for (int i = 0; i < sconce::num_gpus(); ++i) {
    const auto gpu = sconce::cuda::get_device_properties(sconce::gpu(i));
    std::cout << sconce::gpu(i) << ": " << gpu.name << ", " << gpu.total_memory
              << " bytes\n";
  }
}
