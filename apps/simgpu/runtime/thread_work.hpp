#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

struct Stream;

/// The work that a stream must finish before a piece of work. Empty if there is no stream.
struct WorkBefore {
  Stream* stream = nullptr;
  uint64_t tick = 0;
};

/// Begins a piece of work that another thread will run. Unlike `begin_work`, this function does not
/// wait for the stream's earlier work, except in a capture. The caller may hold a lock that is
/// needed to end an endless wait.
/// @return the work that the other thread must finish first.
/// @throw std::runtime_error for a race, if races are configured to throw.
WorkBefore begin_work_of_thread(cudaStream_t stream, const Work& work);

/// Finishes the earlier work in the thread that is going to run the work itself. Calls `check`
/// before each wait, which lasts at most 50 ms. If `check` throws an exception, the wait ends.
void finish(const WorkBefore& before, const std::function<void()>& check);

}  // namespace simgpu
