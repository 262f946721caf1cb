#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

// What a program that runs on simulated GPUs finds with dlsym(). docs/simulated_gpus.md shows its
// use.
#pragma GCC visibility push(default)

extern "C" {

/// The sizes of a launch, as in `kernel<<<grid, block, shared_bytes>>>`.
struct simgpu_launch {
  unsigned grid[3];
  unsigned block[3];
  size_t shared_bytes;
};

/// A function of the CPU that does the work of all threads of a launch. `arguments` points to each
/// argument of the kernel.
using simgpu_kernel = void (*)(const simgpu_launch* launch, void** arguments);

/// Makes the function run in place of the CUDA kernel, whose name is written as in the line that
/// says that it cannot run: "scale(float*, int)". `sizes` has the size of each of the kernel's
/// `count` arguments in bytes. Returns 0, or 1 if the name or the function is missing.
int simgpu_register_kernel(const char* name, simgpu_kernel function, const size_t* sizes,
                           size_t count);

/// Declares, within a kernel's function, that it reads `bytes` of a GPU's memory. Returns the
/// address where the CPU reads them.
/// @throw std::runtime_error in a race, if races are to be thrown.
const void* simgpu_reads(const void* memory, size_t bytes);

/// Like `simgpu_reads`, for memory that the function writes, or reads and writes.
void* simgpu_writes(void* memory, size_t bytes);

}  // extern "C"

#pragma GCC visibility pop

namespace simgpu {

/// Runs the function that is registered for a kernel of this name as work of the stream. Returns
/// false if there is none.
bool launch_user_kernel(const std::string& name, const simgpu_launch& launch, void** arguments,
                        cudaStream_t stream);

/// Whether a function is registered for a kernel of this name.
bool has_user_kernel(const std::string& name);

}  // namespace simgpu
