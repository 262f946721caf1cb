#pragma once

#include <cstddef>

#include "simgpu/runtime/stream.hpp"

// The counts that `--counts` writes: how often the process has requested something from a GPU, in
// total and within each named range. A range counts the operations of all threads while it is open.
// Nothing is counted unless a file is given. All functions except `keep_counts` are called with the
// lock held.
namespace simgpu {

/// Counts a piece of work that is launched on a stream.
void count_work(const Stream& stream, const char* label);

/// Counts a host wait, by the waiting function and its place in the program.
void count_host_wait(const char* function);

/// Counts a copy, by its direction and whether the host memory is pinned.
void count_copy(const char* label, size_t bytes);

/// Counts memory that is requested from the driver.
void count_allocation(size_t bytes);

/// Counts a graph launch. The work that it replays is not counted.
void count_replay();

/// Writes the file when the process ends. If there are several processes, each one adds its rank to
/// the file name.
void keep_counts();

}  // namespace simgpu
