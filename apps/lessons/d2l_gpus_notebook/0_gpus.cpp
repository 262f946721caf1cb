// Lists the machine's GPUs with their driver version, memory, and utilization.
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
  // T2.1
  auto driver = sconce::environment().driver;
  for (size_t i = 0; i < driver.gpus.size(); ++i) {
    auto& gpu = driver.gpus[i];
    std::cout << "GPU " << i << ", " << gpu.name << ", " << driver.version << ", "
              << mebibytes(gpu.memory_total) << '\n';
    std::cout << "~ GPU " << i << ", " << mebibytes(gpu.memory_used) << ", "
              << percent(gpu.utilization) << '\n';
  }
  if (driver.gpus.empty()) std::cout << "The NVIDIA driver reports no GPU.\n";
}
