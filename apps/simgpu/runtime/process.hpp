#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace simgpu {

/// Guards all data that the threads of the process share. Kernels and callbacks run without it.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

/// Returns whether the process was forked from one that had used a GPU. CUDA cannot be used in it.
bool is_unusable_fork();

/// Stores the error for cudaGetLastError in the calling thread, and returns it.
cudaError_t fail(cudaError_t error);

/// Returns a reference to the calling thread's last error.
cudaError_t& last_error();

/// Writes a line to standard error, unless the same line was written before.
void write_once(const std::string& line);

/// Writes once to standard error that simulated GPUs do not support this function.
/// @return cudaErrorNotSupported, which is also stored for cudaGetLastError.
cudaError_t refuse(const char* function);

}  // namespace simgpu
