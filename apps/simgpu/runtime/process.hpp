#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace simgpu {

/// Guards all data shared by the threads of the process. Kernels and callbacks run without holding
/// it.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

/// Returns whether the process was forked from a process that had used a GPU. CUDA cannot be used
/// in such a process.
bool is_unusable_fork();

/// Stores the error so that cudaGetLastError returns it in the calling thread. Returns the error.
cudaError_t fail(cudaError_t error);

/// Returns a reference to the calling thread's last error.
cudaError_t& last_error();

/// Writes a line to standard error, unless the same line has been written before.
void write_once(const std::string& line);

/// The first time, writes a line to standard error saying that simulated GPUs do not support this
/// function.
/// @return cudaErrorNotSupported, which is also stored for cudaGetLastError.
cudaError_t refuse(const char* function);

}  // namespace simgpu
