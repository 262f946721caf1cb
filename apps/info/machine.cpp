#include "info/machine.hpp"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <thread>

#include "gpus_of_cuda.hpp"
#include "sconce/version.hpp"

namespace apps {

namespace {

std::string dotted(long major, long minor) {
  return std::to_string(major) + '.' + std::to_string(minor);
}

std::string dotted(long major, long minor, long patch) {
  return dotted(major, minor) + '.' + std::to_string(patch);
}

// Returns the version reported by a function in one of LibTorch's libraries, or 0 if the function
// is not found. sconce may have been built without the library's header.
int loaded_version(const char* function) {
  int version = 0;
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, function));
  return ask != nullptr && ask(&version) == 0 ? version : 0;
}

void ask_cuda(Machine& machine) {
  if (const int version = loaded_version("cudaRuntimeGetVersion"); version != 0) {
    machine.cuda_runtime = dotted(version / 1000, version % 1000 / 10);
  }
  if (const int version = loaded_version("ncclGetVersion"); version != 0) {
    machine.nccl = dotted(version / 10000, version % 10000 / 100, version % 100);
  }
  const auto& hooks = at::detail::getCUDAHooks();
  if (!hooks.compiledWithCuDNN()) return;
  const long version = hooks.versionCuDNN();
  machine.cudnn = dotted(version / 10000, version % 10000 / 100, version % 100);
}

bool matters(std::string_view name) {
  for (const char* prefix : {"NCCL_", "TORCH_NCCL_", "GLOO_"}) {
    if (name.starts_with(prefix)) return true;
  }
  for (const char* variable :
       {"CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_VISIBLE_DEVICES",
        "LD_LIBRARY_PATH", "LD_PRELOAD", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
        "MASTER_PORT", "MKL_NUM_THREADS", "NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "RANK", "WORLD_SIZE"}) {
    if (name == variable) return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> read_variables() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('='));
    if (name.size() < text.size() && matters(name)) {
      found.emplace_back(name, text.substr(name.size() + 1));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto value = line.find(": ");
    if (line.starts_with("model name") && value != std::string::npos) return line.substr(value + 2);
  }
  return "";
}

// GCC's __VERSION__ contains only the version number, but Clang's also contains the compiler's
// name.
std::string compiler() {
  const std::string version = __VERSION__;
  return version.find_first_of("0123456789") == 0 ? "GCC " + version : version;
}

}  // namespace

Machine this_machine() {
  Machine machine = {
      .environment = sconce::environment(),
      .sconce = dotted(SCONCE_VERSION_MAJOR, SCONCE_VERSION_MINOR, SCONCE_VERSION_PATCH) +
                SCONCE_VERSION_SUFFIX,
      .compiler = compiler(),
      .standard = "C++" + std::to_string(__cplusplus / 100 % 100),
      .cpu = cpu_name(),
      .cores = static_cast<int>(std::thread::hardware_concurrency()),
      .num_threads = at::get_num_threads(),
      .variables = read_variables()};
  if (machine.environment.torch.cuda_loaded) ask_cuda(machine);
  auto& gpus = machine.environment.driver.gpus;
  if (gpus.empty()) gpus = gpus_of_cuda();
  return machine;
}

}  // namespace apps
