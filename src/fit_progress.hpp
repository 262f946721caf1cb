#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sconce/trainer.hpp"

namespace sconce {

class StateVisitor;

/// What a Trainer's checkpoint holds beside the run's parts.
struct FitProgress {
  int64_t batches = 0;                    ///< of a rank's epoch
  int64_t accumulate = 1;                 ///< batches of a step
  std::vector<EpochMetrics> epochs = {};  ///< those that are over
  torch::Tensor sums = {};                ///< (ranks, 3), each rank's over the epoch under way
  double seconds = 0;                     ///< of that epoch
};

void visit_state(EpochMetrics& epoch, StateVisitor& state);
void visit_state(FitProgress& progress, StateVisitor& state);

/// Values by the names that they have in state dicts, as text.
using Settings = std::map<std::string, std::string>;

/// What an optimizer and its scheduler were given, of their state dicts, without what changes as
/// they step; `scheduler` is None where there is none.
Settings settings_of(const c10::IValue& optimizer, const c10::IValue& scheduler);

/// Names each that is another in `now`, with both values; empty if none is.
std::string describe_changes(const Settings& given, const Settings& now);

}  // namespace sconce
