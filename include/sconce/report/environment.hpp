#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sconce {

/// A GPU as the NVIDIA driver describes it. A member is empty if the driver does not know it.
struct GpuInfo {
  std::optional<int> index = {};             ///< Its number in CUDA; empty if hidden or not known.
  std::string name = {};                     ///< Such as "NVIDIA H100".
  std::string uuid = {};                     ///< Such as "GPU-6f2d...".
  std::string bus_id = {};                   ///< Such as "00000000:65:00.0".
  std::optional<int64_t> memory_total = {};  ///< In bytes.
  std::optional<int64_t> memory_used = {};   ///< In bytes, by all processes.
  std::optional<int> utilization = {};       ///< In percent, over the driver's last interval.
};

/// The NVIDIA driver, as its library NVML describes it.
struct DriverInfo {
  std::string error = {};          ///< The error if NVML cannot be asked; else empty.
  std::string version = {};        ///< Such as "580.65.06".
  std::string cuda = {};           ///< The newest CUDA that it supports, such as "13.0".
  std::vector<GpuInfo> gpus = {};  ///< Ordered by bus id; hidden ones are included.
};

/// LibTorch and its CUDA.
struct TorchInfo {
  std::string version = {};                 ///< Version of LibTorch.
  bool built_with_cuda = false;             ///< Whether sconce was built with a CUDA LibTorch.
  bool cuda_loaded = false;                 ///< Whether libtorch_cuda is in this process.
  std::string cuda = {};                    ///< CUDA version that LibTorch was built with.
  int num_gpus = 0;                         ///< Number of GPUs that LibTorch can use.
  std::vector<std::string> gpu_buses = {};  ///< Their bus ids in CUDA's order; empty if not known.
};

/// LibTorch, the driver and the GPUs that a program has. `sconce-info` shows more of its machine.
/// Python: `torch.utils.collect_env`.
struct Environment {
  TorchInfo torch = {};                             ///< LibTorch and its CUDA.
  DriverInfo driver = {};                           ///< The NVIDIA driver and its GPUs.
  std::optional<std::string> visible_devices = {};  ///< CUDA_VISIBLE_DEVICES, if it is set.
  std::optional<std::string> device_order = {};     ///< CUDA_DEVICE_ORDER, if it is set.
};

/// Whether a GPU can be used, and the reason if not.
enum class GpuStatus {
  usable,           ///< A GPU can be used.
  no_driver,        ///< There is no NVIDIA driver, or it does not answer.
  cpu_build,        ///< There is a driver, but LibTorch is a CPU build.
  cuda_not_loaded,  ///< LibTorch is a CUDA build, but libtorch_cuda is not in this process.
  hidden,           ///< CUDA_VISIBLE_DEVICES hides all GPUs.
  driver_too_old,   ///< The driver does not support the CUDA of this LibTorch.
  unusable,         ///< LibTorch finds no GPU for another reason.
};

/// Returns the facts about this process and its machine. Asks CUDA for the number of GPUs, but
/// creates no context on them. Memory and utilization are those of the moment.
Environment environment();

/// Returns the verdict on the facts. It depends on nothing else.
GpuStatus gpu_status(const Environment& facts);

/// Returns the verdict as a sentence without a full stop. If no GPU can be used, the sentence gives
/// the reason.
std::string gpu_status_text(const Environment& facts);

/// Returns the number and names of the GPUs that LibTorch can use, such as "1 GPU (NVIDIA H100)".
std::string gpu_names(const Environment& facts);

}  // namespace sconce
