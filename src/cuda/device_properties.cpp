#include "sconce/cuda/device_properties.hpp"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/util/Exception.h>

#include "sconce/devices.hpp"

namespace sconce::cuda {

DeviceProperties get_device_properties(torch::Device device) {
  TORCH_CHECK(device.is_cuda() && (device.has_index() ? device.index() : 0) < num_gpus(),
              "sconce::cuda::get_device_properties: expected one of ", num_gpus(), " GPUs, got ",
              device);
  const cudaDeviceProp* found = at::cuda::getDeviceProperties(device.index());
  return {.name = found->name,
          .major = found->major,
          .minor = found->minor,
          .total_memory = static_cast<int64_t>(found->totalGlobalMem),
          .multi_processor_count = found->multiProcessorCount};
}

}  // namespace sconce::cuda
