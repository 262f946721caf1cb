#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <vector>

#include "sconce/trainer.hpp"

namespace sconce {

/// What a Trainer's checkpoint holds beside the run's parts.
struct FitProgress {
  int64_t batches = 0;                    ///< of a rank's epoch
  std::vector<EpochMetrics> epochs = {};  ///< those that are over
  torch::Tensor sums = {};                ///< (ranks, 3), each rank's over the epoch under way
  double seconds = 0;                     ///< of that epoch
};

c10::IValue as_ivalue(const FitProgress& progress);

/// @throw c10::Error if the value is not one of `as_ivalue`.
FitProgress as_fit_progress(const c10::IValue& value);

}  // namespace sconce
