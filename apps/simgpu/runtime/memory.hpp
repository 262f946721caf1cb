#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace simgpu {

/// The device number that represents host memory known to CUDA.
constexpr int pinned = -1;

/// A block of memory that is known to CUDA.
struct Block {
  uintptr_t begin = 0;
  size_t size = 0;
  int device = pinned;
  bool is_registered = false;  ///< registered with cudaHostRegister; not owned
  bool is_of_capture = false;  ///< allocated during a capture, as a graph's private memory is
};

/// The address space of all GPU memory. The memory has no access rights there. The library reads
/// and writes the same memory at the same offset from the second address.
constexpr uintptr_t gpu_addresses = uintptr_t{1} << 45;
constexpr uintptr_t host_addresses = gpu_addresses + (uintptr_t{1} << 44);
constexpr size_t address_space = size_t{1} << 44;

/// Returns whether the address is in the address space of GPU memory.
inline bool is_gpu_address(const void* data) {
  return reinterpret_cast<uintptr_t>(data) - gpu_addresses < address_space;
}

/// Returns the block that contains the address, or nullptr if there is none.
Block* find_block(const void* data);

/// Returns whether the memory is entirely within one block or contains no GPU memory.
bool is_accessible(const void* data, size_t size);

/// Allocates GPU memory and fills it with 0xFF.
/// @return cudaErrorMemoryAllocation if the GPU does not have enough free memory.
cudaError_t allocate_gpu_memory(void** data, size_t size, int device, bool is_of_capture);

/// Allocates pinned host memory.
cudaError_t allocate_pinned_memory(void** data, size_t size);

/// Registers host memory with CUDA.
cudaError_t register_memory(void* data, size_t size);

/// Removes a block, and frees its memory unless the block was registered.
void free_block(Block* block);

/// Returns the number of bytes allocated on the GPU.
size_t used_memory(int device);

}  // namespace simgpu
