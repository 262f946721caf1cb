#pragma once

namespace simgpu::nccl {

/// Writes to standard error that simulated GPUs do not support this function, and stores the line
/// for ncclGetLastError.
/// @return ncclInvalidUsage
int refuse(const char* function);

}  // namespace simgpu::nccl
