#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "sconce/training/fit_result.hpp"

namespace train {

/// What a checkpoint tells of its run.
struct SavedRun {
  std::vector<sconce::EpochMetrics> epochs = {};  ///< results of the finished epochs
  int64_t batch = 0;                              ///< finished batches of the epoch after them
  c10::IValue scheduler = {};                     ///< state of the scheduler; None without one

  /// The number of epochs for which its schedule was made, as `ScheduleKeeper` saves it. Empty
  /// without a schedule, and in the checkpoints of version 0.2.0 and earlier.
  std::optional<int64_t> schedule_epochs = {};
};

/// Reads a file that `sconce::Checkpoint` wrote for a fit.
/// @throw c10::Error if the file is damaged or not of a fit.
SavedRun read_saved_run(const std::filesystem::path& checkpoint);

}  // namespace train
