#pragma once

#include <cstdint>
#include <string>

#include "sconce/fwd.hpp"

namespace sconce::cuda {

/// Properties of a GPU, with the same member names as the result of Python's
/// `torch.cuda.get_device_properties`.
struct DeviceProperties {
  std::string name = {};          ///< name reported by the driver, such as "NVIDIA H100 80GB HBM3"
  int major = 0;                  ///< major version of the compute capability
  int minor = 0;                  ///< minor version of the compute capability
  int64_t total_memory = 0;       ///< total memory in bytes
  int multi_processor_count = 0;  ///< number of streaming multiprocessors
};

/// Returns the properties of a GPU. Python: `torch.cuda.get_device_properties(device)`.
/// @throw c10::Error if `device` is not a GPU that this process can use, or if sconce was built
/// without CUDA.
DeviceProperties get_device_properties(torch::Device device);

}  // namespace sconce::cuda
