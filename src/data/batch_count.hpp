#pragma once

#include <c10/util/Exception.h>

#include <cstdint>

namespace sconce::data {

// The number of batches that so many rows are cut into.
inline int64_t batch_count(int64_t rows, int64_t batch_size, bool drop_last) {
  const bool has_short_one = rows % batch_size != 0;
  return rows / batch_size + (has_short_one && !drop_last ? 1 : 0);
}

// Refuses a loop that is to begin at a batch that is not there; at the end there is nothing to do.
inline void check_first_batch(int64_t batch, int64_t batches, const char* who) {
  TORCH_CHECK(batch >= 0 && batch <= batches, who, ": expected a batch of 0 to ", batches, ", got ",
              batch);
}

}  // namespace sconce::data
