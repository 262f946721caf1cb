#pragma once

#include <sys/resource.h>

namespace sconce::test {

/// Returns the peak memory of this process in MiB.
inline double peak_memory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace sconce::test
