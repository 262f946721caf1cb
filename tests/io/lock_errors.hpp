#pragma once

#include <atomic>

namespace sconce::test {

/// The error with which each `flock` of this program fails, or 0 if it works.
inline std::atomic<int> errno_of_flock = 0;

}  // namespace sconce::test
