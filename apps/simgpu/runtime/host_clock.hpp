#pragma once

#include <cstdint>

#include "simgpu/runtime/clock.hpp"

namespace simgpu {

/// Returns the work that the calling thread knows to be finished. This includes the work that it
/// has waited for, and the work that other threads had waited for before it synchronized with them
/// in `exchange_host_clock`.
const Clock& host_clock();

/// Records that the calling thread has waited for everything in the clock.
void join_host_clock(const Clock& done);

/// Exchanges information between the calling thread and all threads that call this function for the
/// same object, so that each thread knows what the others have waited for so far. Called when a
/// thread locks or unlocks a mutex, starts, ends, or is joined.
void exchange_host_clock(const void* object);

/// Exchanges information in the same way when the calling thread ends, and then clears the thread's
/// knowledge.
void leave_host_clock(const void* object);

/// Blocks exchanges while the process is being forked.
void hold_exchanges();
void release_exchanges();

}  // namespace simgpu
