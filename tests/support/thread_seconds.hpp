#pragma once

#include <time.h>

namespace sconce::test {

/// Returns this thread's CPU time in seconds. Other processes do not affect this time.
inline double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace sconce::test
