#pragma once

#include <cstdint>
#include <optional>

#include "command_line.hpp"
#include "saved_run.hpp"

namespace train {

/// The part of a run that a schedule covers: the whole run, or the rest if it was restarted.
struct ScheduleSpan {
  int64_t epochs = 0;     ///< from the first epoch of the schedule to the last of the run
  int64_t steps = 0;      ///< number of steps in these epochs
  bool restarts = false;  ///< whether the schedule replaces that of the saved run now
};

/// Returns the span of a run's schedule. A saved run continues its own schedule if the command line
/// has the number of epochs that it was made for. Checkpoints of 0.2 do not have this number, so
/// the command line's is used. `none` takes any number.
/// @throw UsageError naming both numbers if they differ, unless `--restart-schedule` is given; or
/// if no epoch remains for that flag.
ScheduleSpan schedule_span(const CommandLine& line, const std::optional<SavedRun>& saved,
                           int64_t steps_per_epoch);

}  // namespace train
