#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <string_view>

#include "host_call.hpp"

namespace sconce::data {

// Checks and returns the epoch. Throws if the epoch is negative or if the caller runs in a captured
// step. `caller` is the name of the calling function.
inline int64_t check_epoch(int64_t epoch, std::string_view caller) {
  TORCH_CHECK(epoch >= 0, caller, ": expected epoch to be at least 0, got ", epoch);
  sconce::detail::check_not_capturing(caller);
  return epoch;
}

}  // namespace sconce::data
