#pragma once

#include <cstdint>
#include <optional>

#include "command_line.hpp"
#include "saved_run.hpp"

namespace train {

/// The part of a run that a schedule covers, which is the whole run or, after a restart, the
/// remaining epochs.
struct ScheduleSpan {
  int64_t epochs = 0;     ///< from the first epoch of the schedule to the last epoch of the run
  int64_t steps = 0;      ///< the number of steps in these epochs
  bool restarts = false;  ///< whether it now replaces the saved run's schedule
};

/// Returns the span of a run's schedule. A saved run continues its own schedule if the command line
/// specifies the number of epochs that the schedule was created for. Checkpoints from version 0.2
/// do not contain this number, so the number on the command line is used. With `none`, any number
/// is valid.
/// @throw UsageError with both numbers if they differ and `--restart-schedule` is not given, or if
/// no epochs remain for a restarted schedule.
ScheduleSpan schedule_span(const CommandLine& line, const std::optional<SavedRun>& saved,
                           int64_t steps_per_epoch);

}  // namespace train
