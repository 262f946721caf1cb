#pragma once

#include <sys/types.h>

#include <cstdint>

namespace simgpu::nccl {

/// A process of this machine. The start time tells it from a later one with the same id.
struct Process {
  pid_t id = 0;
  uint64_t start_time = 0;
};

/// Returns the calling process.
Process this_process();

/// Whether the process still runs. One that has ended and waits for its parent does not.
bool is_running(const Process& process);

}  // namespace simgpu::nccl
