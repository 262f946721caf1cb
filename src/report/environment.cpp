#include "sconce/report/environment.hpp"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include "report/nvml.hpp"
#include "report/visible_gpus.hpp"
#include "sconce/devices.hpp"
#include "sconce/version.hpp"

namespace sconce {

namespace {

std::string dotted(long major, long minor) {
  return std::to_string(major) + '.' + std::to_string(minor);
}

std::string dotted(long major, long minor, long patch) {
  return dotted(major, minor) + '.' + std::to_string(patch);
}

// Finds a function of a library that LibTorch loads. sconce may be built without its header.
template <class Function>
Function* loaded_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string cuda_runtime() {
  int version = 0;
  const auto ask = loaded_function<int(int*)>("cudaRuntimeGetVersion");
  if (ask == nullptr || ask(&version) != 0) return "";
  return dotted(version / 1000, version % 1000 / 10);
}

std::string nccl() {
  int version = 0;
  const auto ask = loaded_function<int(int*)>("ncclGetVersion");
  if (ask == nullptr || ask(&version) != 0) return "";
  return dotted(version / 10000, version % 10000 / 100, version % 100);
}

std::string cudnn(const at::CUDAHooksInterface& hooks) {
  if (!hooks.compiledWithCuDNN()) return "";
  const long version = hooks.versionCuDNN();
  return dotted(version / 10000, version % 10000 / 100, version % 100);
}

// cudaDeviceGetPCIBusId creates no context on the GPU.
std::vector<std::string> gpu_buses(int count) {
  const auto ask = loaded_function<int(char*, int, int)>("cudaDeviceGetPCIBusId");
  std::vector<std::string> ids;
  for (int i = 0; ask != nullptr && i < count; ++i) {
    std::array<char, 64> id = {};
    if (ask(id.data(), static_cast<int>(id.size()) - 1, i) != 0) return {};
    ids.emplace_back(id.data());
  }
  return ids;
}

TorchFacts ask_torch() {
  TorchFacts facts = {.version = TORCH_VERSION,
                      .built_with_cuda = SCONCE_TORCH_IS_CUDA,
                      .cuda_loaded = c10::impl::hasDeviceGuardImpl(c10::kCUDA),
                      .num_gpus = num_gpus(),
                      .num_threads = at::get_num_threads()};
  if (!facts.cuda_loaded) return facts;
  const auto& hooks = at::detail::getCUDAHooks();
  const long cuda = hooks.versionCUDART();
  facts.cuda = dotted(cuda / 1000, cuda % 1000 / 10);
  facts.cuda_runtime = cuda_runtime();
  facts.cudnn = cudnn(hooks);
  facts.nccl = nccl();
  facts.gpu_buses = gpu_buses(facts.num_gpus);
  return facts;
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

// GCC's __VERSION__ is only a number; clang's has its name.
std::string compiler() {
  const std::string version = __VERSION__;
  return version.find_first_of("0123456789") == 0 ? "GCC " + version : version;
}

}  // namespace

Environment environment() {
  Environment facts = {
      .sconce = dotted(SCONCE_VERSION_MAJOR, SCONCE_VERSION_MINOR, SCONCE_VERSION_PATCH),
      .compiler = compiler(),
      .standard = "C++" + std::to_string(__cplusplus / 100 % 100),
      .cpu = cpu_name(),
      .cores = static_cast<int>(std::thread::hardware_concurrency()),
      .torch = ask_torch(),
      .driver = ask_nvml(),
      .variables = read_variables()};
  number_gpus(facts);
  return facts;
}

GpuVerdict gpu_verdict(const Environment& facts) {
  if (facts.torch.num_gpus > 0) return GpuVerdict::usable;
  if (!facts.driver.error.empty()) return GpuVerdict::no_driver;
  if (!facts.torch.built_with_cuda) return GpuVerdict::cpu_build;
  if (!facts.torch.cuda_loaded) return GpuVerdict::cuda_not_loaded;
  // A driver supports all CUDA versions of its major version, also newer ones.
  const auto major = [](const std::string& version) { return std::atoi(version.c_str()); };
  if (!facts.driver.cuda.empty() && major(facts.driver.cuda) < major(facts.torch.cuda)) {
    return GpuVerdict::driver_too_old;
  }
  if (!facts.driver.gpus.empty() && visible_gpus(facts).empty()) return GpuVerdict::hidden;
  return GpuVerdict::unusable;
}

}  // namespace sconce
