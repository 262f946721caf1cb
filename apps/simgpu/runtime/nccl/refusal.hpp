#pragma once

namespace simgpu::nccl {

/// Writes a line to standard error saying that simulated GPUs do not support this function, and
/// stores the line for ncclGetLastError.
/// @return ncclInvalidUsage
int refuse(const char* function);

}  // namespace simgpu::nccl
