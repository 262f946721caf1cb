#pragma once

#include <atomic>

namespace sconce::test {

/// What each `flock` of this program fails with. 0: it does its work.
inline std::atomic<int> errno_of_flock = 0;

}  // namespace sconce::test
