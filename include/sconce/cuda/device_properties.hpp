#pragma once

#include <cstdint>
#include <string>

#include "sconce/fwd.hpp"

namespace sconce::cuda {

/// What a GPU is. The members have the names of Python's `torch.cuda.get_device_properties`.
struct DeviceProperties {
  std::string name = {};          ///< as the driver tells it, such as "NVIDIA H100 80GB HBM3"
  int major = 0;                  ///< compute capability, before the point
  int minor = 0;                  ///< compute capability, after the point
  int64_t total_memory = 0;       ///< bytes
  int multi_processor_count = 0;  ///< streaming multiprocessors
};

/// Returns the properties of one GPU. Python: `torch.cuda.get_device_properties(device)`.
/// @throw c10::Error if `device` is not a GPU that this process can use, or if sconce was built
/// without CUDA.
DeviceProperties get_device_properties(torch::Device device);

}  // namespace sconce::cuda
