#pragma once

#include <cstdint>

#include "sconce/fwd.hpp"

namespace sconce::cuda {

/// Bytes that this process has of a device's memory.
struct MemoryStats {
  int64_t allocated = 0;      ///< in tensors
  int64_t max_allocated = 0;  ///< the most since the start, or since the last reset
  int64_t reserved = 0;       ///< in tensors and in the allocator's cache
  int64_t max_reserved = 0;   ///< the most since the start, or since the last reset
};

/// Returns the memory of a GPU as LibTorch's allocator counts it on the host, without waiting for
/// the device; all 0 where no tensor has been on a GPU. LibTorch's allocator for the CPU counts
/// nothing: there both figures are the memory that the process holds (its resident set), LibTorch's
/// code included. Python: `torch.cuda.memory_stats`, `memory_allocated`, `memory_reserved` and
/// their `max_` forms.
/// @throw c10::Error if the device is neither CPU nor CUDA, or, on the CPU, if the system does not
/// tell.
MemoryStats memory_stats(torch::Device device);

/// Sets the peaks of a device to what it has now. Those of a GPU that no tensor has been on are 0
/// anyway. Python: `torch.cuda.reset_peak_memory_stats`.
/// @throw c10::Error as above, or, on the CPU, if the system does not allow it.
void reset_peak_memory_stats(torch::Device device);

/// Gives the memory that LibTorch keeps for later tensors on GPUs back to them. Does nothing where
/// no tensor has been on a GPU. Python: `torch.cuda.empty_cache()`.
void empty_cache();

}  // namespace sconce::cuda
