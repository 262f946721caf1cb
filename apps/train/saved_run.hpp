#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "sconce/training/fit_result.hpp"

namespace train {

/// The saved run in a checkpoint.
struct SavedRun {
  std::vector<sconce::EpochMetrics> epochs = {};  ///< results of the finished epochs
  int64_t batch = 0;           ///< number of finished batches in the epoch after them
  c10::IValue scheduler = {};  ///< state of the scheduler, or None

  /// The number of epochs that the schedule was made for, which `ScheduleKeeper` saves. It is empty
  /// without a schedule, and in checkpoints of version 0.2 and earlier.
  std::optional<int64_t> schedule_epochs = {};
};

/// Reads a file that `sconce::Checkpoint` wrote for a fit.
/// @throw c10::Error if the file is damaged or not of a fit.
SavedRun read_saved_run(const std::filesystem::path& checkpoint);

}  // namespace train
