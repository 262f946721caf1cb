#include "sconce/cuda/device_properties.hpp"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/util/Exception.h>

#include "resolve_device.hpp"

namespace sconce::cuda {

DeviceProperties get_device_properties(torch::Device device) {
  constexpr auto caller = "sconce::cuda::get_device_properties";
  TORCH_CHECK(device.is_cuda(), caller, ": expected a GPU, got ", device);
  device = resolve_device(device, caller);
  const cudaDeviceProp* found = at::cuda::getDeviceProperties(device.index());
  return {.name = found->name,
          .major = found->major,
          .minor = found->minor,
          .total_memory = static_cast<int64_t>(found->totalGlobalMem),
          .multi_processor_count = found->multiProcessorCount};
}

}  // namespace sconce::cuda
