#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// When to step a scheduler. Python: "interval" in Lightning.
enum class SchedulerInterval {
  epoch,  ///< after each epoch
  step    ///< after each step of the optimizer, including steps skipped by the scaler
};

/// Steps a scheduler that controls the fit's optimizer.
///
///     optim::lr_scheduler::StepLR scheduler(optimizer, /*step_size=*/10);
///     LRScheduling scheduling(scheduler);
///     trainer.fit(model, optimizer, {.train = batches, .callbacks = {&scheduling}});
///
/// Python: "lr_scheduler" in the result of Lightning's `configure_optimizers`.
class LRScheduling : public TrainerCallback {
 public:
  /// Constructs a callback. `scheduler` must outlive this object. `name` identifies the scheduler's
  /// state in checkpoints. If a fit has two LRScheduling callbacks, they must have different names.
  explicit LRScheduling(optim::lr_scheduler::LRScheduler& scheduler,
                        SchedulerInterval interval = SchedulerInterval::epoch,
                        std::string name = "scheduler")
      : scheduler_(scheduler), interval_(interval), name_(std::move(name)) {}

  /// @throw c10::Error if a OneCycleLR has fewer steps than the fit.
  void on_fit_start(Fit& fit) override;
  /// Steps the scheduler if the interval is `step`.
  void on_after_optimizer_step(Fit& fit) override;
  /// Steps the scheduler if the interval is `epoch`.
  void on_epoch_end(Fit& fit) override;
  /// Returns the name passed to the constructor.
  std::string name() const override { return name_; }
  /// Returns the scheduler as a checkpoint part.
  std::optional<Stateful> state() override { return Stateful(scheduler_); }

 private:
  optim::lr_scheduler::LRScheduler& scheduler_;
  SchedulerInterval interval_;
  std::string name_;
};

/// Steps a `ReduceLROnPlateau` scheduler after each epoch, based on a monitored value.
class PlateauScheduling : public TrainerCallback {
 public:
  /// Constructs a callback. `monitor` is one of `Fit::value_names`, such as "loss" or "test_acc"
  /// (or its alias "val_acc"). A scheduler without a mode uses the monitored value's direction
  /// (`Fit::value_modes`). `scheduler` must outlive this object. `name` identifies the scheduler's
  /// state in checkpoints. If a fit has two PlateauScheduling callbacks, they must have different
  /// names.
  explicit PlateauScheduling(optim::lr_scheduler::ReduceLROnPlateau& scheduler,
                             std::string monitor = "test_loss", std::string name = "plateau")
      : scheduler_(scheduler), requested_monitor_(std::move(monitor)), name_(std::move(name)) {}

  /// @throw c10::Error if:
  /// - `monitor` is not one of the available names, which are listed in the message;
  /// - `monitor` has no direction, and the scheduler has no mode.
  void setup(Fit& fit) override;
  /// Sets the scheduler's mode. If a checkpoint restored a different mode, warns and discards the
  /// previous best value.
  void on_fit_start(Fit& fit) override;
  /// Steps the scheduler with the epoch's monitored value.
  void on_epoch_end(Fit& fit) override;
  /// Returns the name passed to the constructor. Because the default names differ, a fit may also
  /// contain an `LRScheduling` callback.
  std::string name() const override { return name_; }
  /// If this callback has its default name, returns "scheduler", the default name in version 0.2.
  /// Otherwise, returns an empty vector.
  std::vector<std::string> former_names() const override {
    return name_ == "plateau" ? std::vector<std::string>{"scheduler"} : std::vector<std::string>();
  }
  /// Returns the scheduler as a checkpoint part.
  std::optional<Stateful> state() override { return Stateful(scheduler_); }

 private:
  optim::lr_scheduler::ReduceLROnPlateau& scheduler_;
  std::string requested_monitor_;
  std::string name_;
  std::string monitor_ = {};                         // of the current fit
  optim::MetricMode mode_ = optim::MetricMode::min;  // of the current fit
};

}  // namespace sconce
