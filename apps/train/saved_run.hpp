#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "sconce/training/fit_result.hpp"

namespace train {

/// The run saved in a checkpoint.
struct SavedRun {
  std::vector<sconce::EpochMetrics> epochs = {};  ///< results of the finished epochs
  int64_t batch = 0;                              ///< number of finished batches in the next epoch
  c10::IValue scheduler = {};                     ///< state of the scheduler, or None
  std::optional<int64_t> scheduler_steps = {};    ///< number of scheduler steps so far

  /// The number of epochs that the schedule was created for, as saved by `ScheduleKeeper`. Empty if
  /// there is no schedule or if the checkpoint is from version 0.2 or earlier.
  std::optional<int64_t> schedule_epochs = {};
};

/// Reads a checkpoint that `sconce::Checkpoint` wrote during a call to `fit`.
/// @throw c10::Error with the file's path and the key of a value that `fit` would not have saved.
SavedRun read_saved_run(const std::filesystem::path& checkpoint);

}  // namespace train
