#include "program/package_target.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/util/hash.h>
#include <torch/version.h>

#include <fstream>
#include <utility>

#include "program/python_package.hpp"
#include "sconce/cuda/device_properties.hpp"

namespace sconce::program::detail {

namespace {

std::string short_hash(const std::string& text) {
  return c10::sha1(text).str().substr(0, 8);
}

// The build settings include the LibTorch commit. The text before the build settings depends on the
// machine.
std::string torch_build() {
  const auto config = at::show_config();
  const auto settings = config.find("Build settings");
  return short_hash(settings == config.npos ? config : config.substr(settings));
}

// Returns the value from a "key : value" line in /proc/cpuinfo.
std::string value_of(const std::string& line) {
  const auto colon = line.find(": ");
  return colon == line.npos ? "" : line.substr(colon + 2);
}

std::string cpu_of_machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown model", instructions;
  // Reads only the entry for the first processor. On ARM, the flags are called "Features".
  for (std::string line; std::getline(info, line) && !line.empty();) {
    if (line.starts_with("model name")) model = value_of(line);
    if (line.starts_with("flags") || line.starts_with("Features")) instructions = value_of(line);
  }
  return model + ", instructions " + short_hash(instructions) + ", " + at::get_cpu_capability();
}

// Different versions of these files may compile the same program differently.
std::string hash_of_compiler() {
  std::string all;
  for (const auto& file : python_package()) all += file.text;
  return short_hash(all);
}

std::string for_threads(int threads) {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace

PackageTarget package_target(c10::Device device) {
  return {.torch = std::string(TORCH_VERSION) + ", build " + torch_build(),
          .cpu = cpu_of_machine(),
          .device = device.is_cuda() ? cuda::get_device_properties(device).name : device.str(),
          .threads = at::get_num_threads(),
          .compiler = hash_of_compiler()};
}

std::string difference(const PackageTarget& found, const PackageTarget& expected) {
  const auto differ = [](const std::string& what, const std::string& actual) {
    return "expected a package for " + what + ", found one for " + actual;
  };
  if (found.torch != expected.torch) return differ("LibTorch " + expected.torch, found.torch);
  if (found.cpu != expected.cpu) return differ("the CPU " + expected.cpu, found.cpu);
  if (found.device != expected.device) {
    return differ("the device " + expected.device, found.device);
  }
  if (found.threads != expected.threads) {
    return differ(for_threads(expected.threads), std::to_string(found.threads));
  }
  if (found.compiler == expected.compiler) return "";
  return "expected a package built by the compiler " + expected.compiler + ", found one built by " +
         found.compiler;
}

}  // namespace sconce::program::detail
