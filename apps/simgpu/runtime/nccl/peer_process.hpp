#pragma once

#include <sys/types.h>

#include <cstdint>

namespace simgpu::nccl {

/// A process on this machine. The start time distinguishes it from a later process with the same
/// id.
struct Process {
  pid_t id = 0;
  uint64_t start_time = 0;
};

/// Returns the calling process.
Process this_process();

/// Returns whether the process is still running. A process that has terminated but has not been
/// reaped by its parent is not running.
bool is_running(const Process& process);

}  // namespace simgpu::nccl
