#pragma once

#include <cstdint>

#include "optimization.hpp"
#include "schedule_span.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace train {

/// Saves the number of epochs that a run's schedule was made for in the run's checkpoints, and
/// starts a new schedule if the span requires one. Put it before the callback that steps the
/// scheduler.
class ScheduleKeeper : public sconce::TrainerCallback {
 public:
  /// `schedule` is a new schedule for the span. Both must outlive this object. If the schedule
  /// restarts, the constructor loads the saved state into it, because loading the checkpoint would
  /// otherwise warn about a difference.
  ScheduleKeeper(const CommandLine& line, const ScheduleSpan& span, Schedule& schedule,
                 const std::optional<SavedRun>& saved);

  void on_fit_start(sconce::Fit& fit) override;
  std::string name() const override { return "schedule"; }
  /// Empty if the loaded checkpoint is from 0.2; `on_fit_start` then adds the state.
  std::optional<sconce::Stateful> state() override;

 private:
  sconce::Stateful epochs_of_schedule() const;

  const CommandLine& line_;
  const ScheduleSpan& span_;
  Schedule& schedule_;
  bool is_loaded_;
};

}  // namespace train
