#pragma once

#include <time.h>

namespace sconce::test {

/// Returns the CPU time of this thread in seconds, which other processes do not affect.
inline double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace sconce::test
