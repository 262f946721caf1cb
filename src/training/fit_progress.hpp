#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sconce/training/fit_result.hpp"

namespace sconce {

class StateVisitor;

/// The progress of a fit, as it is stored in a Trainer's checkpoint.
struct FitProgress {
  int64_t batches = 0;                       ///< batches per epoch, on each rank
  int64_t accumulate = 1;                    ///< batches per step; 0: written by an earlier sconce
  std::vector<EpochMetrics> epochs = {};     ///< results of finished epochs
  at::Tensor sums = {};                      ///< (ranks, n), sums of the current epoch per rank
  std::vector<std::string> values = {};      ///< names of the step values in `sums`
  double seconds = 0;                        ///< time spent on the current epoch
  std::optional<c10::IValue> compiler = {};  ///< state of the compiler, if there is one
  std::optional<c10::IValue> train = {};     ///< state of the training batches, if they have one
};

void visit_state(EpochMetrics& epoch, StateVisitor& state);
void visit_state(FitProgress& progress, StateVisitor& state);

}  // namespace sconce
