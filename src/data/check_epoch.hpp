#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <string_view>

namespace sconce::data {

// Returns the epoch. Throws if it is negative.
inline int64_t check_epoch(int64_t epoch, std::string_view who) {
  TORCH_CHECK(epoch >= 0, who, ": expected an epoch of 0 or more, got ", epoch);
  return epoch;
}

}  // namespace sconce::data
