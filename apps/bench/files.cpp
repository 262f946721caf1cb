// Loads and saves safetensors files with `size` tensors of 16 MiB each. The files are in the page
// cache. The load benchmark also sums each tensor. In the save benchmark, sconce also waits until
// the file has been written to disk.

#include "sconce/io/safetensors.hpp"

#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "workload.hpp"

namespace bench {

namespace {

namespace fs = std::filesystem;

// A temporary file that is deleted at the end of the workload.
struct TemporaryFile {
  fs::path path =
      fs::temp_directory_path() / ("sconce-bench-" + std::to_string(getpid()) + ".safetensors");
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

sconce::StateDict make_state(int64_t size) {
  torch::manual_seed(0);
  sconce::StateDict state;
  for (int64_t i = 0; i < size; ++i) {
    state.insert("layer" + std::to_string(i) + ".weight", torch::rand({2048, 2048}));
  }
  return state;
}

double load_and_sum(const fs::path& path) {
  double sum = 0;
  for (const auto& entry : sconce::io::load_safetensors(path)) {
    sum += entry.value().sum().item<double>();
  }
  return sum;
}

Workload load(int64_t size) {
  const auto file = std::make_shared<TemporaryFile>();
  sconce::io::save_safetensors(file->path, make_state(size));
  return {[file] { load_and_sum(file->path); }, {load_and_sum(file->path)}};
}

Workload save(int64_t size) {
  const auto file = std::make_shared<TemporaryFile>();
  const auto state = make_state(size);
  sconce::io::save_safetensors(file->path, state);
  return {[=] { sconce::io::save_safetensors(file->path, state); }, {load_and_sum(file->path)}};
}

}  // namespace

Workloads files() {
  return {{"load", load}, {"save", save}};
}

}  // namespace bench
