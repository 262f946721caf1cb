#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sconce {

/// Information about a GPU as reported by the NVIDIA driver. If the driver does not report a value,
/// the member is empty.
struct GpuInfo {
  std::optional<int> index = {};             ///< CUDA index; empty if hidden or unknown
  std::string name = {};                     ///< such as "NVIDIA H100"
  std::string uuid = {};                     ///< such as "GPU-6f2d..."
  std::string bus_id = {};                   ///< such as "00000000:65:00.0"
  std::optional<int64_t> memory_total = {};  ///< in bytes
  std::optional<int64_t> memory_used = {};   ///< in bytes, summed over all processes
  std::optional<int> utilization = {};       ///< in percent, over the driver's last sampling
                                             ///< interval
};

/// Information about the NVIDIA driver as reported by the NVML library.
struct DriverInfo {
  std::string error = {};          ///< the error if NVML is unavailable; otherwise empty
  std::string version = {};        ///< such as "580.65.06"
  std::string cuda = {};           ///< newest supported CUDA version, such as "13.0"
  std::vector<GpuInfo> gpus = {};  ///< ordered by bus ID, including hidden GPUs
};

/// Information about LibTorch and its CUDA version.
struct TorchInfo {
  std::string version = {};                 ///< version of LibTorch
  bool built_with_cuda = false;             ///< whether sconce was built with a CUDA build of
                                            ///< LibTorch
  bool cuda_loaded = false;                 ///< whether libtorch_cuda is loaded in this process
  std::string cuda = {};                    ///< CUDA version with which LibTorch was built
  int num_gpus = 0;                         ///< number of GPUs that LibTorch can use
  std::vector<std::string> gpu_buses = {};  ///< bus IDs of these GPUs in CUDA's order; empty if
                                            ///< unknown
};

/// Information about LibTorch, the driver, and the GPUs available to a program. `sconce-info`
/// reports more information about the machine. Python: `torch.utils.collect_env`.
struct Environment {
  TorchInfo torch = {};                             ///< LibTorch and its CUDA version
  DriverInfo driver = {};                           ///< the NVIDIA driver and its GPUs
  std::optional<std::string> visible_devices = {};  ///< CUDA_VISIBLE_DEVICES, if set
  std::optional<std::string> device_order = {};     ///< CUDA_DEVICE_ORDER, if set
};

/// Whether a GPU can be used and, if not, why not.
enum class GpuStatus {
  usable,           ///< a GPU can be used
  no_driver,        ///< there is no NVIDIA driver, or it does not respond
  cpu_build,        ///< there is a driver, but LibTorch is a CPU build
  cuda_not_loaded,  ///< LibTorch is a CUDA build, but libtorch_cuda is not loaded
  hidden,           ///< CUDA_VISIBLE_DEVICES hides all GPUs
  driver_too_old,   ///< the driver does not support this LibTorch's CUDA version
  unusable,         ///< LibTorch finds no GPU for another reason
};

/// Returns information about this process and its machine. Queries CUDA for the GPU count without
/// creating any GPU contexts. Each call queries the current memory use and utilization.
Environment environment();

/// Determines the GPU status from `facts` alone.
GpuStatus gpu_status(const Environment& facts);

/// Returns the GPU status as a sentence without a period. If no GPU can be used, the sentence
/// explains why.
std::string gpu_status_text(const Environment& facts);

/// Returns the number and names of the GPUs that LibTorch can use, such as "1 GPU (NVIDIA H100)".
std::string gpu_names(const Environment& facts);

}  // namespace sconce
