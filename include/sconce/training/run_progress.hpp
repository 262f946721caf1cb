#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

namespace sconce {

/// The position of a run.
struct RunProgress {
  int64_t epoch = 0;       ///< number of finished epochs
  int64_t batch = 0;       ///< number of finished batches in the epoch after them
  c10::IValue extra = {};  ///< further values of the run, of the types that `io::save_torch`
                           ///< supports
};

}  // namespace sconce
