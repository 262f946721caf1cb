// The machine's GPUs: which there are, with what memory, and how busy they are.
// Covers: T0.smi T1.smi T2.1
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

// Returns the lines that the command prints, or none if it fails.
std::vector<std::string> run(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr)
    lines.emplace_back(line);
  return pipe != nullptr && pclose(pipe) == 0 ? lines : std::vector<std::string>{};
}

int main() {
  // T0.smi, T1.smi, T2.1
  // note: the tutorials print nvidia-smi's whole table. Its "CUDA Version" is the newest that the
  // driver could serve, not the one in use, so the lesson asks for single columns.
  const std::string query = "nvidia-smi --format=csv,noheader --query-gpu=";
  const auto gpus = run(query + "index,name,driver_version,memory.total");
  for (const auto& line : gpus) std::cout << "GPU " << line;
  for (const auto& line : run(query + "index,memory.used,utilization.gpu")) {
    std::cout << "~ GPU " << line;
  }
  if (gpus.empty()) std::cout << "nvidia-smi shows no GPU on this machine\n";

  // note: the tool's number i is cuda:i only with CUDA_DEVICE_ORDER=PCI_BUS_ID, and it shows GPUs
  // that CUDA_VISIBLE_DEVICES hides from this process; so the process counts for itself.
  std::cout << "Beyond the cells:\n";
  std::cout << "GPUs of the machine: " << gpus.size() << '\n';
  std::cout << "GPUs for this process: " << sconce::num_gpus() << '\n';
}
