#pragma once

#include <cstdint>

#include "sconce/fwd.hpp"

namespace sconce::cuda {

/// Memory that this process uses on a device, in bytes.
struct MemoryStats {
  int64_t allocated = 0;      ///< memory used by tensors
  int64_t max_allocated = 0;  ///< peak of `allocated` since the last reset
  int64_t reserved = 0;       ///< memory used by tensors or cached for later use
  int64_t max_reserved = 0;   ///< peak of `reserved` since the last reset
};

/// Returns the memory that this process uses on `device`. For a GPU, the values come from
/// LibTorch's allocator. Reading memory statistics does not wait for the device. Before the first
/// tensor is created on a GPU, the GPU values are 0. The CPU allocator does not keep statistics, so
/// `allocated` and `reserved` both report the process's resident memory, including LibTorch's code.
/// If /proc/self/status does not contain VmHWM, as in gVisor, the CPU peak comes from getrusage and
/// cannot be reset. Python: `torch.cuda.memory_stats`, `memory_allocated`, `memory_reserved`, and
/// their `max_` variants.
/// @throw c10::Error if:
/// - the device is neither a CPU nor a CUDA device;
/// - it is a GPU that this process cannot use (checked only once a tensor has been created on a
///   GPU);
/// - it is the CPU and /proc/self/status cannot be read.
MemoryStats memory_stats(torch::Device device);

/// Resets the peak memory use of `device` to its current memory use. Python:
/// `torch.cuda.reset_peak_memory_stats`.
/// @throw c10::Error if:
/// - the device is neither a CPU nor a CUDA device;
/// - it is a GPU that this process cannot use (checked only once a tensor has been created on a
///   GPU);
/// - it is the CPU and /proc/self/clear_refs cannot be written.
void reset_peak_memory_stats(torch::Device device);

/// Releases all unused memory that LibTorch has cached on GPUs. Does nothing before the first
/// tensor is created on a GPU. Python: `torch.cuda.empty_cache()`.
void empty_cache();

}  // namespace sconce::cuda
