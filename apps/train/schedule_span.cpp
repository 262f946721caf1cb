#include "schedule_span.hpp"

#include <ATen/ceil_div.h>

#include <iterator>
#include <string>

namespace train {

ScheduleSpan schedule_span(const CommandLine& line, const std::optional<SavedRun>& saved,
                           int64_t steps_per_epoch) {
  const std::string run = "the run in " + line.checkpoint.string();
  if (!saved || line.scheduler == "none") return {line.epochs, line.epochs * steps_per_epoch};
  const int64_t done = std::ssize(saved->epochs);
  const int64_t done_steps =
      done * steps_per_epoch + at::ceil_div<int64_t>(saved->batch, line.accumulate);
  if (line.restart_schedule && done >= line.epochs) {
    throw UsageError("--restart-schedule: " + run + " has finished " + std::to_string(done) +
                     " epochs, so no epochs remain with --epochs " + std::to_string(line.epochs));
  }
  const int64_t made_for = saved->schedule_epochs.value_or(line.epochs);
  if (line.restart_schedule && (made_for != line.epochs || !saved->schedule_epochs)) {
    return {line.epochs - done, line.epochs * steps_per_epoch - done_steps, true};
  }
  if (made_for != line.epochs) {
    throw UsageError("--epochs: " + run + " has " + std::to_string(made_for) + ", not " +
                     std::to_string(line.epochs) +
                     "; --restart-schedule starts a new schedule over the remaining epochs");
  }
  TORCH_CHECK(saved->scheduler_steps, "--scheduler: ", run, " uses a different one");
  const int64_t schedule_done = *saved->scheduler_steps;
  const bool by_steps = line.scheduler == "onecycle";
  const int64_t epochs_before = by_steps ? 0 : done - schedule_done;
  const int64_t steps_before = by_steps ? done_steps - schedule_done : 0;
  return {line.epochs - epochs_before, line.epochs * steps_per_epoch - steps_before};
}

}  // namespace train
