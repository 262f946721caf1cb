#include "sconce/report/environment.hpp"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "report/nvml.hpp"
#include "report/visible_gpus.hpp"
#include "sconce/devices.hpp"

namespace sconce {

namespace {

// cudaDeviceGetPCIBusId does not create a context on the GPU. The function is looked up in the
// library that LibTorch loads, because sconce may have been built without the header.
std::vector<std::string> gpu_buses(int count) {
  const auto ask =
      reinterpret_cast<int (*)(char*, int, int)>(dlsym(RTLD_DEFAULT, "cudaDeviceGetPCIBusId"));
  std::vector<std::string> ids;
  for (int i = 0; ask != nullptr && i < count; ++i) {
    std::array<char, 64> id = {};
    if (ask(id.data(), static_cast<int>(id.size()) - 1, i) != 0) return {};
    ids.emplace_back(id.data());
  }
  return ids;
}

TorchInfo ask_torch() {
  TorchInfo facts = {.version = TORCH_VERSION,
                     .built_with_cuda = SCONCE_TORCH_IS_CUDA,
                     .cuda_loaded = c10::impl::hasDeviceGuardImpl(c10::kCUDA),
                     .num_gpus = num_gpus()};
  if (!facts.cuda_loaded) return facts;
  const long cuda = at::detail::getCUDAHooks().versionCUDART();
  facts.cuda = std::to_string(cuda / 1000) + '.' + std::to_string(cuda % 1000 / 10);
  facts.gpu_buses = gpu_buses(facts.num_gpus);
  return facts;
}

// Control characters in an environment variable's value would break the table.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

Environment environment() {
  Environment facts = {.torch = ask_torch(),
                       .driver = ask_nvml(),
                       .visible_devices = variable("CUDA_VISIBLE_DEVICES"),
                       .device_order = variable("CUDA_DEVICE_ORDER")};
  number_gpus(facts);
  return facts;
}

GpuStatus gpu_status(const Environment& facts) {
  if (facts.torch.num_gpus > 0) return GpuStatus::usable;
  if (!facts.driver.error.empty()) return GpuStatus::no_driver;
  if (!facts.torch.built_with_cuda) return GpuStatus::cpu_build;
  if (!facts.torch.cuda_loaded) return GpuStatus::cuda_not_loaded;
  // A driver supports all CUDA versions with the same major version, including newer versions.
  const auto major = [](const std::string& version) { return std::atoi(version.c_str()); };
  if (!facts.driver.cuda.empty() && major(facts.driver.cuda) < major(facts.torch.cuda)) {
    return GpuStatus::driver_too_old;
  }
  if (!facts.driver.gpus.empty() && visible_gpus(facts).empty()) return GpuStatus::hidden;
  return GpuStatus::unusable;
}

std::string gpu_status_text(const Environment& facts) {
  switch (gpu_status(facts)) {
    case GpuStatus::usable:
      return gpu_names(facts) + " can be used";
    case GpuStatus::no_driver:
      return "no GPU can be used: this machine or container has no working NVIDIA driver";
    case GpuStatus::cpu_build:
      return "no GPU can be used: LibTorch is a CPU build; build sconce with a CUDA build of "
             "LibTorch";
    case GpuStatus::cuda_not_loaded:
      return "no GPU can be used: libtorch_cuda is not loaded; link the program through sconce's "
             "CMake targets, or with -Wl,--no-as-needed -ltorch_cuda";
    case GpuStatus::hidden:
      return "no GPU can be used: CUDA_VISIBLE_DEVICES='" +
             one_line(facts.visible_devices.value_or("")) + "' hides all GPUs on this machine (" +
             std::to_string(facts.driver.gpus.size()) + ")";
    case GpuStatus::driver_too_old:
      return "no GPU can be used: the driver " + facts.driver.version +
             " is too old; it supports CUDA up to " + facts.driver.cuda + ", LibTorch needs CUDA " +
             facts.torch.cuda;
    case GpuStatus::unusable:
      break;
  }
  return "no GPU can be used: the driver lists " + std::to_string(facts.driver.gpus.size()) +
         ", but CUDA cannot use any of them";
}

std::string gpu_names(const Environment& facts) {
  const int count = facts.torch.num_gpus;
  std::string text = std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
  for (int i = 0; i < count; ++i) {
    const auto& gpus = facts.driver.gpus;
    const auto found =
        std::find_if(gpus.begin(), gpus.end(), [i](const GpuInfo& gpu) { return gpu.index == i; });
    const bool has_name = found != gpus.end() && !found->name.empty();
    text += (i == 0 ? " (" : ", ") + (has_name ? found->name : "cuda:" + std::to_string(i));
  }
  return count > 0 ? text + ")" : text;
}

}  // namespace sconce
