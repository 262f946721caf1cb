// The machine's GPUs: which there are, with what memory, and how busy they are.
// Covers: T0.smi T1.smi T2.1
#include <sconce/sconce.hpp>

#include <iostream>
#include <optional>
#include <string>

std::string mebibytes(std::optional<int64_t> bytes) {
  return bytes ? std::to_string(*bytes / (1 << 20)) + " MiB" : "[N/A]";
}

int main() {
  // T0.smi, T1.smi, T2.1
  // note: the tutorials print nvidia-smi's table. The facts come from the same library of the
  // driver, NVML, without starting a program; sconce-info prints more of them.
  const auto driver = sconce::environment().driver;
  const auto& gpus = driver.gpus;
  for (size_t i = 0; i < gpus.size(); ++i) {
    std::cout << "GPU " << i << ", " << gpus[i].name << ", " << driver.version << ", "
              << mebibytes(gpus[i].memory_total) << '\n';
  }
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto busy = gpus[i].utilization;
    std::cout << "~ GPU " << i << ", " << mebibytes(gpus[i].memory_used) << ", "
              << (busy ? std::to_string(*busy) + " %" : "[N/A]") << '\n';
  }
  if (gpus.empty()) std::cout << "nvidia-smi shows no GPU on this machine\n";

  // note: the driver's number i is cuda:i only with CUDA_DEVICE_ORDER=PCI_BUS_ID, and it lists GPUs
  // that CUDA_VISIBLE_DEVICES hides from this process; so the process counts for itself.
  std::cout << "Beyond the cells:\n";
  std::cout << "GPUs of the machine: " << gpus.size() << '\n';
  std::cout << "GPUs for this process: " << sconce::num_gpus() << '\n';
}
