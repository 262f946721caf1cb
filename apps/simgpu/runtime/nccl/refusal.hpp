#pragma once

namespace simgpu::nccl {

/// Writes to standard error that simulated GPUs have no such function, and keeps the line for
/// ncclGetLastError.
/// @return ncclInvalidUsage
int refuse(const char* function);

}  // namespace simgpu::nccl
