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

/// The progress of a fit in a Trainer's checkpoint.
struct FitProgress {
  int64_t batches = 0;                       ///< number of batches of an epoch, on each rank
  int64_t accumulate = 1;                    ///< batches of a step; 0: an earlier sconce wrote none
  std::vector<EpochMetrics> epochs = {};     ///< results of the finished epochs
  at::Tensor sums = {};                      ///< (ranks, n), sums of the current epoch on each rank
  std::vector<std::string> values = {};      ///< names of the steps' values in `sums`
  double seconds = 0;                        ///< time of the current epoch
  std::optional<c10::IValue> compiler = {};  ///< state of the compiler, if there is one
  std::optional<c10::IValue> train = {};     ///< that of the training batches, if they have one
};

void visit_state(EpochMetrics& epoch, StateVisitor& state);
void visit_state(FitProgress& progress, StateVisitor& state);

}  // namespace sconce
