#pragma once

#include <atomic>

namespace sconce::test {

/// The error code with which every `flock` call in this program fails, or 0 if the calls succeed.
inline std::atomic<int> errno_of_flock = 0;

}  // namespace sconce::test
