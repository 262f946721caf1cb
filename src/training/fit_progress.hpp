#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sconce/training/fit_result.hpp"

namespace sconce {

class StateVisitor;

/// What a Trainer's checkpoint holds beside the run's parts.
struct FitProgress {
  int64_t batches = 0;                    ///< of a rank's epoch
  int64_t accumulate = 1;                 ///< batches of a step; 0: unknown, of an earlier sconce
  std::vector<EpochMetrics> epochs = {};  ///< those that are over
  at::Tensor sums = {};                   ///< (ranks, n), each rank's over the epoch under way
  double seconds = 0;                     ///< of that epoch
};

void visit_state(EpochMetrics& epoch, StateVisitor& state);
void visit_state(FitProgress& progress, StateVisitor& state);

}  // namespace sconce
