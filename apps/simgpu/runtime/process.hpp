#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace simgpu {

/// Guards everything that the threads of the process share. Kernels and callbacks run without it.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

/// Whether the process was forked from one that had used a GPU. CUDA cannot be used in it.
bool is_unusable_fork();

/// Keeps the error for cudaGetLastError of the calling thread, and returns it.
cudaError_t fail(cudaError_t error);

/// The calling thread's last error, which may be set.
cudaError_t& last_error();

/// Writes a line to standard error, unless it has been written before.
void write_once(const std::string& line);

/// Writes once to standard error that simulated GPUs have no such function.
/// @return cudaErrorNotSupported, kept for cudaGetLastError.
cudaError_t refuse(const char* function);

}  // namespace simgpu
