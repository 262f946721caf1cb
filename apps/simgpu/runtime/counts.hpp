#pragma once

#include <cstddef>

#include "simgpu/runtime/stream.hpp"

// Counts how often the process sends each kind of request to a GPU, in total and within each named
// range. `--counts` writes the counts to a file. An open range counts operations from all threads.
// Nothing is counted unless a file is specified. All functions except `keep_counts` must be called
// with the lock held.
namespace simgpu {

/// Counts a piece of work launched on a stream.
void count_work(const Stream& stream, const char* label);

/// Counts a wait on the host, grouped by the waiting function and its place in the program.
void count_host_wait(const char* function);

/// Counts a copy, grouped by its direction and whether the host memory is pinned.
void count_copy(const char* label, size_t bytes);

/// Counts memory requested from the driver.
void count_allocation(size_t bytes);

/// Counts a graph launch. The work that it replays is not counted.
void count_replay();

/// Writes the file when the process ends. If there are several processes, each of them appends its
/// rank to the file name.
void keep_counts();

}  // namespace simgpu
