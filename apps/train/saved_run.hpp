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
  std::optional<int64_t> scheduler_steps = {};  ///< how often the scheduler has stepped

  /// The number of epochs that the schedule was made for, which `ScheduleKeeper` saves. It is empty
  /// without a schedule, and in checkpoints of version 0.2 and earlier.
  std::optional<int64_t> schedule_epochs = {};
};

/// Reads a file that `sconce::Checkpoint` wrote for a fit.
/// @throw c10::Error naming the file, and the key of a value that is not as a fit saves it.
SavedRun read_saved_run(const std::filesystem::path& checkpoint);

}  // namespace train
