#pragma once

#include <atomic>

namespace sconce::test {

/// The error with which every call of `flock` in this program fails, or 0 if the calls succeed.
inline std::atomic<int> errno_of_flock = 0;

}  // namespace sconce::test
