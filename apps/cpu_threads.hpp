#pragma once

#include <string>

#include "sconce/tuned_threads.hpp"

namespace apps {

/// Returns the number of threads and the reason for it, such as "1 CPU thread (1 of 2 CPUs is
/// busy)".
inline std::string describe(const sconce::TunedThreads& tuned) {
  const std::string count = std::to_string(tuned.threads);
  return count + (tuned.threads == 1 ? " CPU thread" : " CPU threads") +
         (tuned.reason.empty() ? "" : " (" + tuned.reason + ")");
}

}  // namespace apps
