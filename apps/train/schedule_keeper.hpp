#pragma once

#include <cstdint>

#include "optimization.hpp"
#include "schedule_span.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace train {

/// Saves the number of epochs that a run's schedule was created for in the run's checkpoints, and
/// starts a new schedule if the span requires one. Place this callback before the one that steps
/// the scheduler.
class ScheduleKeeper : public sconce::TrainerCallback {
 public:
  /// `schedule` is a new schedule for the span. Both must outlive this object. If the schedule
  /// restarts, the constructor loads the saved state into the schedule. Otherwise, loading the
  /// checkpoint would produce a warning about a difference.
  ScheduleKeeper(const CommandLine& line, const ScheduleSpan& span, Schedule& schedule,
                 const std::optional<SavedRun>& saved);

  void on_fit_start(sconce::Fit& fit) override;
  std::string name() const override { return "schedule"; }
  /// Empty if the loaded checkpoint is from version 0.2. In that case, `on_fit_start` adds the
  /// state.
  std::optional<sconce::Stateful> state() override;

 private:
  sconce::Stateful epochs_of_schedule() const;

  const CommandLine& line_;
  const ScheduleSpan& span_;
  Schedule& schedule_;
  bool is_loaded_;
};

}  // namespace train
