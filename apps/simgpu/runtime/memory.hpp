#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace simgpu {

/// Device of memory of the host that CUDA knows.
constexpr int pinned = -1;

/// Memory that CUDA knows.
struct Block {
  uintptr_t begin = 0;
  size_t size = 0;
  int device = pinned;
  bool is_registered = false;  ///< by cudaHostRegister: somebody else's memory
  bool is_of_capture = false;  ///< allocated during a capture, as a graph's private memory is
};

/// The address space of all GPUs' memory. It has no access rights; the library reads and writes the
/// same memory at the same distance from the second address.
constexpr uintptr_t gpu_addresses = uintptr_t{1} << 45;
constexpr uintptr_t host_addresses = gpu_addresses + (uintptr_t{1} << 44);
constexpr size_t address_space = size_t{1} << 44;

/// Whether the address is one that only a GPU's memory has.
inline bool is_gpu_address(const void* data) {
  return reinterpret_cast<uintptr_t>(data) - gpu_addresses < address_space;
}

/// Returns the block that the address lies in, or nullptr.
Block* find_block(const void* data);

/// Whether all of the memory lies in one block, or none of it is a GPU's.
bool is_accessible(const void* data, size_t size);

/// Allocates memory of a GPU, filled with 0xFF.
/// @return cudaErrorMemoryAllocation if the GPU has not so much left.
cudaError_t allocate_gpu_memory(void** data, size_t size, int device, bool is_of_capture);

/// Allocates pinned memory of the host.
cudaError_t allocate_pinned_memory(void** data, size_t size);

/// Makes memory of the host known to CUDA.
cudaError_t register_memory(void* data, size_t size);

/// Forgets a block, and gives its memory back unless it was registered.
void free_block(Block* block);

/// Bytes that are allocated on the GPU.
size_t used_memory(int device);

}  // namespace simgpu
