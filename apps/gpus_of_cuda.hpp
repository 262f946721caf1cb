#pragma once

#include <c10/util/Exception.h>

#include <vector>

#include "sconce/cuda/device_properties.hpp"
#include "sconce/devices.hpp"
#include "sconce/report/environment.hpp"

namespace apps {

/// Returns the GPUs visible to this process, with the names and memory sizes reported by CUDA. The
/// names and sizes are missing if sconce was built without CUDA's headers. `sconce::environment()`
/// queries the driver's NVML instead, which takes longer to load and may be missing even if CUDA
/// finds GPUs, as in a container or with simulated GPUs.
inline std::vector<sconce::GpuInfo> gpus_of_cuda() {
  std::vector<sconce::GpuInfo> gpus;
  for (int i = 0; i < sconce::num_gpus(); ++i) {
    auto& gpu = gpus.emplace_back();
    gpu.index = i;
    try {
      const auto properties = sconce::cuda::get_device_properties(sconce::gpu(i));
      gpu.name = properties.name;
      gpu.memory_total = properties.total_memory;
    } catch (const c10::Error&) {  // built without CUDA's headers
    }
  }
  return gpus;
}

}  // namespace apps
