#pragma once

#include <cstddef>

#include "simgpu/runtime/stream.hpp"

// What `--counts` writes: how often the process has asked a GPU for something, in all and within
// each named range. A range counts what any thread does while it is open. Without a file nothing is
// counted. All but `keep_counts` are called with the lock held.
namespace simgpu {

/// Counts a piece of work that is launched on a stream.
void count_work(const Stream& stream, const char* label);

/// Counts a wait of the host, by the function that waits and its place in the program.
void count_host_wait(const char* function);

/// Counts a copy, by where it goes and whether the host's memory is pinned.
void count_copy(const char* label, size_t bytes);

/// Counts memory that the driver is asked for.
void count_allocation(size_t bytes);

/// Counts a launch of a graph. What it replays is not counted.
void count_replay();

/// Writes the file when the process ends. A process of several adds its rank to the name.
void keep_counts();

}  // namespace simgpu
