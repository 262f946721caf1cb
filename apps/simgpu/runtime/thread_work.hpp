#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

struct Stream;

/// What a stream has to do before a piece of work. Without a stream, nothing.
struct WorkBefore {
  Stream* stream = nullptr;
  uint64_t tick = 0;
};

/// Begins a piece of work that another thread will do. Unlike `begin_work`, it does not wait for
/// what the stream does first, except in a capture: the call that requests the work may hold a lock
/// that whoever ends an endless wait needs.
/// @return what the other thread has to finish first.
/// @throw std::runtime_error in a race, if races are to be thrown.
WorkBefore begin_work_of_thread(cudaStream_t stream, const Work& work);

/// Finishes what comes before the work, in the thread that will do it. Calls `check` before each
/// wait, which is at most 50 ms long. It ends the wait by an exception.
void finish(const WorkBefore& before, const std::function<void()>& check);

}  // namespace simgpu
