#pragma once

#include <cstdint>

#include "optimization.hpp"
#include "schedule_span.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace train {

/// Keeps in a run's checkpoints for how many epochs its schedule was made, and begins a new one
/// where the span says so. It stands before the callback that steps the scheduler.
class ScheduleKeeper : public sconce::TrainerCallback {
 public:
  /// `schedule` is a new one of the span; both outlive this object. The state of the saved run's
  /// scheduler is taken already here, since the checkpoint would warn of the difference.
  ScheduleKeeper(const CommandLine& line, const ScheduleSpan& span, Schedule& schedule,
                 const std::optional<SavedRun>& saved);

  void on_fit_begin(sconce::Fit& fit) override;
  std::string name() const override { return "schedule"; }
  /// Nothing where a checkpoint is loaded that has no such part. Such a run gets it as it begins.
  std::optional<sconce::Stateful> state() override;

 private:
  sconce::Stateful epochs_of_schedule() const;

  const CommandLine& line_;
  const ScheduleSpan& span_;
  Schedule& schedule_;
  bool is_loaded_;
};

}  // namespace train
