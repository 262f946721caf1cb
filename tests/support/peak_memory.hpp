#pragma once

#include <sys/resource.h>

namespace sconce::test {

/// The most memory that this process has had, in MiB.
inline double peak_memory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace sconce::test
