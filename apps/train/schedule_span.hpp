#pragma once

#include <cstdint>
#include <optional>

#include "command_line.hpp"
#include "saved_run.hpp"

namespace train {

/// Over what a run's schedule goes: the whole run, or what remained when it was begun anew.
struct ScheduleSpan {
  int64_t epochs = 0;     ///< from the schedule's first epoch to the run's last
  int64_t steps = 0;      ///< of these epochs
  bool restarts = false;  ///< whether the schedule begins now, in the place of the saved run's
};

/// Returns the span of a run's schedule. A saved run continues its own, if the command line has the
/// number of epochs for which that was made. `none` takes any number.
/// @throw UsageError if the number is another one without `--restart-schedule`, naming both, or if
/// no epoch remains for that flag.
ScheduleSpan schedule_span(const CommandLine& line, const std::optional<SavedRun>& saved,
                           int64_t steps_per_epoch);

}  // namespace train
