#pragma once

#include <cstdint>

#include "sconce/fwd.hpp"

namespace sconce::cuda {

/// How much of a device's memory this process uses, in bytes.
struct MemoryStats {
  int64_t allocated = 0;      ///< used by tensors
  int64_t max_allocated = 0;  ///< the peak of `allocated` since the last reset
  int64_t reserved = 0;       ///< used by tensors, and cached for later ones
  int64_t max_reserved = 0;   ///< the peak of `reserved` since the last reset
};

/// Returns how much memory this process uses on a device. On a GPU these are the figures of
/// LibTorch's allocator, which cost no wait for the device and are 0 before the first tensor on a
/// GPU. The allocator for the CPU keeps no figures: `allocated` and `reserved` are both the
/// resident memory of the process, LibTorch's code included. Python: `torch.cuda.memory_stats`,
/// `memory_allocated`, `memory_reserved` and their `max_` forms.
/// @throw c10::Error if the device is neither CPU nor CUDA, is a GPU that is not there, or, on the
/// CPU, if /proc/self/status cannot be read.
MemoryStats memory_stats(torch::Device device);

/// Sets the peaks of a device to its current use. Python: `torch.cuda.reset_peak_memory_stats`.
/// @throw c10::Error if the device is neither CPU nor CUDA, is a GPU that is not there, or, on the
/// CPU, if /proc/self/clear_refs cannot be written.
void reset_peak_memory_stats(torch::Device device);

/// Releases the memory that LibTorch has cached on all GPUs. Does nothing before the first tensor
/// on a GPU. Python: `torch.cuda.empty_cache()`.
void empty_cache();

}  // namespace sconce::cuda
