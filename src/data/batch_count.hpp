#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <string_view>

namespace sconce::data {

// Returns the number of batches that the rows are split into.
inline int64_t batch_count(int64_t rows, int64_t batch_size, bool drop_last) {
  const bool has_short_one = rows % batch_size != 0;
  return rows / batch_size + (has_short_one && !drop_last ? 1 : 0);
}

// Returns the epoch. Throws if it is negative.
inline int64_t check_epoch(int64_t epoch, std::string_view who) {
  TORCH_CHECK(epoch >= 0, who, ": expected an epoch of 0 or more, got ", epoch);
  return epoch;
}

// Checks that a loop begins at an existing batch, or at the end, where it has nothing to do.
inline void check_first_batch(int64_t batch, int64_t batches, const char* who) {
  TORCH_CHECK(batch >= 0 && batch <= batches, who, ": expected a batch index from 0 to ", batches,
              ", got ", batch);
}

}  // namespace sconce::data
