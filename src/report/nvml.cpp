#include "report/nvml.hpp"

#include <dlfcn.h>

#include <array>

namespace sconce {

namespace {

// These types match the types in the NVML header. The layout of each type is stable, because NVML
// renames a type when its layout changes.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUtilization {
  unsigned int gpu, memory;
};
struct NvmlPci {
  char legacy_bus_id[16];
  unsigned int domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

class Nvml {
 public:
  explicit Nvml(const char* library) : handle_(dlopen(library, RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* reason = dlerror();
      error_ = reason != nullptr ? reason : std::string("cannot load ") + library;
    } else if (symbol<int()>("nvmlInit_v2") == nullptr) {
      error_ = std::string(library) + " lacks nvmlInit_v2";
    } else if (const int code = call("nvmlInit_v2"); code != 0) {
      error_ = "NVML answers: " + message(code);
    } else {
      started_ = true;
    }
  }
  ~Nvml() {
    if (started_) call("nvmlShutdown");
    if (handle_ != nullptr) dlclose(handle_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& error() const { return error_; }

  // Returns the NVML return code: 0 for success, or `function_not_found` if the library does not
  // contain the function.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = symbol<int(Arguments...)>(name);
    return function != nullptr ? function(arguments...) : function_not_found;
  }

  // Returns the string that the function writes, or an empty string if the function fails.
  template <class... Arguments>
  std::string text(const char* name, Arguments... arguments) const {
    std::array<char, 256> buffer = {};
    const auto size = static_cast<unsigned int>(buffer.size() - 1);
    return call(name, arguments..., buffer.data(), size) == 0 ? buffer.data() : "";
  }

 private:
  static constexpr int function_not_found = 13;

  template <class Function>
  Function* symbol(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

  std::string message(int code) const {
    const auto function = symbol<const char*(int)>("nvmlErrorString");
    return function != nullptr ? function(code) : "error " + std::to_string(code);
  }

  void* handle_;
  bool started_ = false;
  std::string error_;
};

GpuInfo ask_device(const Nvml& nvml, NvmlDevice device) {
  GpuInfo gpu = {.name = nvml.text("nvmlDeviceGetName", device),
                 .uuid = nvml.text("nvmlDeviceGetUUID", device)};
  if (NvmlPci pci = {}; nvml.call("nvmlDeviceGetPciInfo_v3", device, &pci) == 0) {
    pci.bus_id[sizeof pci.bus_id - 1] = 0;
    gpu.bus_id = pci.bus_id;
  }
  if (NvmlMemory memory = {}; nvml.call("nvmlDeviceGetMemoryInfo", device, &memory) == 0) {
    gpu.memory_total = static_cast<int64_t>(memory.total);
    gpu.memory_used = static_cast<int64_t>(memory.used);
  }
  if (NvmlUtilization busy = {}; nvml.call("nvmlDeviceGetUtilizationRates", device, &busy) == 0) {
    gpu.utilization = static_cast<int>(busy.gpu);
  }
  return gpu;
}

}  // namespace

DriverInfo ask_nvml(const char* library) {
  const Nvml nvml(library);
  DriverInfo facts = {.error = nvml.error()};
  if (!facts.error.empty()) return facts;
  facts.version = nvml.text("nvmlSystemGetDriverVersion");
  int cuda = 0;
  if (nvml.call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == 0) {
    facts.cuda = std::to_string(cuda / 1000) + '.' + std::to_string(cuda % 1000 / 10);
  }
  unsigned int count = 0;
  if (nvml.call("nvmlDeviceGetCount_v2", &count) != 0) return facts;
  for (unsigned int i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device) == 0) {
      facts.gpus.push_back(ask_device(nvml, device));
    } else {
      facts.gpus.emplace_back();  // a GPU that fell off the bus is still counted
    }
  }
  return facts;
}

}  // namespace sconce
