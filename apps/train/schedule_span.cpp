#include "schedule_span.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

namespace train {

namespace {

// The numbers of epochs for which the saved run's schedule may have been made.
struct EpochRange {
  int64_t lowest = 1;
  int64_t highest = std::numeric_limits<int64_t>::max();
};

std::string text_of(const EpochRange& epochs) {
  const std::string lowest = std::to_string(epochs.lowest);
  return epochs.lowest == epochs.highest ? lowest
                                         : lowest + " to " + std::to_string(epochs.highest);
}

c10::IValue value_of(const c10::IValue& scheduler, const char* key) {
  const bool has_it = scheduler.isGenericDict() && scheduler.toGenericDict().contains(key);
  TORCH_CHECK(has_it, "--scheduler: the run in the --checkpoint folder has another one");
  return scheduler.toGenericDict().at(key);
}

// From the rate that a cosine has come to; at its begin it has the same for each number of epochs.
EpochRange epochs_of_cosine(const c10::IValue& scheduler) {
  const int64_t done = value_of(scheduler, "last_epoch").toInt();
  if (done < 1) return {};
  const double lr = value_of(scheduler, "_last_lr").toListRef()[0].toDouble();
  const double initial_lr = value_of(scheduler, "base_lrs").toListRef()[0].toDouble();
  const double share = std::clamp(lr / initial_lr, 0., 1.);
  const double angle = std::acos(2 * share - 1);
  const int64_t epochs = std::llround(std::numbers::pi * static_cast<double>(done) / angle);
  return {epochs, epochs};
}

// A run that does not say for how many epochs its schedule was made: the state of the schedule
// tells.
EpochRange epochs_by_state(const CommandLine& line, const c10::IValue& scheduler,
                           int64_t steps_per_epoch) {
  if (line.scheduler == "cosine") return epochs_of_cosine(scheduler);
  if (line.scheduler == "onecycle") {
    const int64_t epochs = value_of(scheduler, "total_steps").toInt() / steps_per_epoch;
    return {epochs, epochs};
  }
  const int64_t third = value_of(scheduler, "step_size").toInt();
  return {third == 1 ? 1 : 3 * third, 3 * third + 2};
}

}  // namespace

ScheduleSpan schedule_span(const CommandLine& line, const std::optional<SavedRun>& saved,
                           int64_t steps_per_epoch) {
  const std::string run = "the run in " + line.checkpoint.string();
  if (!saved || line.scheduler == "none") return {line.epochs, line.epochs * steps_per_epoch};
  const int64_t done = std::ssize(saved->epochs);
  const int64_t done_steps =
      done * steps_per_epoch + (saved->batch + line.accumulate - 1) / line.accumulate;
  if (line.restart_schedule && done >= line.epochs) {
    throw UsageError("--restart-schedule: " + run + " has finished " + std::to_string(done) +
                     " epochs, and none remains of --epochs " + std::to_string(line.epochs));
  }
  const EpochRange made_for = saved->schedule_epochs
                                  ? EpochRange{*saved->schedule_epochs, *saved->schedule_epochs}
                                  : epochs_by_state(line, saved->scheduler, steps_per_epoch);
  if (line.epochs < made_for.lowest || line.epochs > made_for.highest) {
    if (line.restart_schedule) {
      return {line.epochs - done, line.epochs * steps_per_epoch - done_steps, true};
    }
    throw UsageError("--epochs: " + run + " has " + text_of(made_for) + ", not " +
                     std::to_string(line.epochs) +
                     "; --restart-schedule begins a new schedule over the epochs that remain");
  }
  const int64_t schedule_done = value_of(saved->scheduler, "last_epoch").toInt();
  const bool by_steps = line.scheduler == "onecycle";
  const int64_t epochs_before = by_steps ? 0 : done - schedule_done;
  const int64_t steps_before = by_steps ? done_steps - schedule_done : 0;
  return {line.epochs - epochs_before, line.epochs * steps_per_epoch - steps_before};
}

}  // namespace train
