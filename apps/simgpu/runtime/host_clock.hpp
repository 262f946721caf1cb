#pragma once

#include <cstdint>

#include "simgpu/runtime/clock.hpp"

namespace simgpu {

/// Returns what the calling thread knows to be done: what it has waited for itself, and what other
/// threads had waited for that it has heard of by `exchange_host_clock`.
const Clock& host_clock();

/// Tells that the calling thread has waited for all that the clock knows.
void join_host_clock(const Clock& done);

/// Lets the calling thread and those that call this for the same object know what each of them had
/// waited for by then. Called where a thread locks or unlocks a mutex, begins, ends or is joined.
void exchange_host_clock(const void* object);

/// Does so at the end of the calling thread, which knows nothing from then on.
void leave_host_clock(const void* object);

/// Keeps exchanges away while the process is forked.
void hold_exchanges();
void release_exchanges();

}  // namespace simgpu
