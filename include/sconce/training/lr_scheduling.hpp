#pragma once

#include <string>
#include <vector>

#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// When a scheduler is stepped. Python: "interval" of Lightning.
enum class SchedulerInterval {
  epoch,  ///< after each epoch
  step    ///< after each step of the optimizer, including steps that the scaler skips
};

/// Steps a scheduler of the fit's optimizer. Python: "lr_scheduler" in the result of Lightning's
/// `configure_optimizers`.
class LRScheduling : public TrainerCallback {
 public:
  /// The scheduler must outlive this object.
  explicit LRScheduling(optim::lr_scheduler::LRScheduler& scheduler,
                        SchedulerInterval interval = SchedulerInterval::epoch)
      : scheduler_(scheduler), interval_(interval) {}

  /// @throw c10::Error if a OneCycleLR has fewer steps than the fit.
  void on_fit_begin(Fit& fit) override;
  /// Steps the scheduler if the interval is `step`.
  void on_after_step(Fit& fit) override;
  /// Steps the scheduler if the interval is `epoch`.
  void on_epoch_end(Fit& fit) override;
  /// Returns "scheduler".
  std::string name() const override { return "scheduler"; }
  /// Returns the scheduler as a part of a checkpoint.
  std::optional<Stateful> state() override { return Stateful(scheduler_); }

 private:
  optim::lr_scheduler::LRScheduler& scheduler_;
  SchedulerInterval interval_;
};

/// Steps a `ReduceLROnPlateau` after each epoch with one of the metrics.
class PlateauScheduling : public TrainerCallback {
 public:
  /// `monitor` is one of `Fit::value_names`, such as "loss" or "test_acc". "val_acc" stands for
  /// "test_acc". The scheduler must outlive this object.
  explicit PlateauScheduling(optim::lr_scheduler::ReduceLROnPlateau& scheduler,
                             std::string monitor = "test_loss")
      : scheduler_(scheduler), monitor_(std::move(monitor)) {}

  /// @throw c10::Error listing the names that there are if `monitor` is not one of them.
  void setup(Fit& fit) override;
  /// Steps the scheduler with the value of the epoch.
  void on_epoch_end(Fit& fit) override { scheduler_.step(fit.epochs.back().at(monitor_)); }
  /// Returns "plateau", so that a fit may have a `LRScheduling` beside it.
  std::string name() const override { return "plateau"; }
  /// Returns "scheduler", its name in 0.2.
  std::vector<std::string> former_names() const override { return {"scheduler"}; }
  /// Returns the scheduler as a part of a checkpoint.
  std::optional<Stateful> state() override { return Stateful(scheduler_); }

 private:
  optim::lr_scheduler::ReduceLROnPlateau& scheduler_;
  std::string monitor_;
};

}  // namespace sconce
