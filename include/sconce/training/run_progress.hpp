#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

namespace sconce {

/// The progress of a run.
struct RunProgress {
  int64_t epoch = 0;       ///< number of finished epochs
  int64_t batch = 0;       ///< number of finished batches in the current epoch
  c10::IValue extra = {};  ///< additional values of the run, with types supported by
                           ///< `io::save_torch`
};

}  // namespace sconce
