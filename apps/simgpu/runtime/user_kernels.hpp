#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

// Functions that a program running on simulated GPUs can look up with dlsym().
// docs/simulated_gpus.md shows how to use them.
#pragma GCC visibility push(default)

extern "C" {

/// The sizes of a launch, as in `kernel<<<grid, block, shared_bytes>>>`.
struct simgpu_launch {
  unsigned grid[3];
  unsigned block[3];
  size_t shared_bytes;
};

/// A CPU function that does the work of all threads in a launch. `arguments` contains a pointer to
/// each of the kernel's arguments.
using simgpu_kernel = void (*)(const simgpu_launch* launch, void** arguments);

/// Registers a function that runs instead of a CUDA kernel. Write the kernel's name as it appears
/// in the message that the kernel cannot run, such as "scale(float*, int)". `sizes` contains the
/// size in bytes of each of the kernel's `count` arguments. Returns 0, or 1 if the name or the
/// function is missing.
int simgpu_register_kernel(const char* name, simgpu_kernel function, const size_t* sizes,
                           size_t count);

/// Called in a kernel's function to declare that it reads `bytes` bytes of GPU memory. Returns the
/// address at which the CPU can read them.
/// @throw std::runtime_error for a race, if races are configured to throw.
const void* simgpu_reads(const void* memory, size_t bytes);

/// Same as `simgpu_reads`, but for memory that the function writes, or both reads and writes.
void* simgpu_writes(void* memory, size_t bytes);

}  // extern "C"

#pragma GCC visibility pop

namespace simgpu {

/// Runs the function registered for a kernel with this name as work on the stream. Returns false if
/// no such function is registered.
bool launch_user_kernel(const std::string& name, const simgpu_launch& launch, void** arguments,
                        cudaStream_t stream);

/// Returns whether a function is registered for a kernel with this name.
bool has_user_kernel(const std::string& name);

}  // namespace simgpu
