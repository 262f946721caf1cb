#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Options of `ScalarLogger`.
struct ScalarLogOptions {
  /// Number of steps between two values of "loss_step" and of "lr_step". 0 writes neither.
  int64_t every_n_steps = 0;
  /// Whether to continue the scalars of the folder. Otherwise the folder must have none.
  bool resume = false;
};

/// Writes a fit's scalars into a folder's `ScalarWriter`, on rank 0. After each epoch: "loss", each
/// metric, "lr" of the epoch's last step ("lr-1" and so on for further parameter groups), "scale"
/// if the scaler is enabled, "examples_per_second" and "seconds". "loss_step" is the loss of the
/// step's last batch on rank 0. The step is the number of calls of the optimizer since the start of
/// the run; calls that the scaler skips count too. Losses of steps stay on the device until the
/// next flush, which reads all of them at once: after an epoch, at a save, and at the fit's end.
///
/// A resumed fit continues from its checkpoint, and scalars of later steps are dropped. Therefore
/// put this before a ModelCheckpoint in the list of callbacks: a checkpoint must not exist before
/// the scalars of its steps. If the files cannot be written, this warns once and the fit goes on;
/// the values are written when the disk has room. Python: `TensorBoardLogger` and `CSVLogger` of
/// Lightning, with `LearningRateMonitor`.
class ScalarLogger : public TrainerCallback {
 public:
  /// @throw c10::Error if every_n_steps is below 0.
  explicit ScalarLogger(std::filesystem::path folder, ScalarLogOptions options = {});
  ~ScalarLogger() override;

  /// Starts the files, or continues them.
  /// @throw c10::Error, before the first step, like the constructor of `ScalarWriter`, or if the
  /// fit is within another one that this logs.
  void on_fit_start(Fit& fit) override;
  /// Writes the files.
  void on_fit_end(Fit& fit) override;
  /// Keeps the learning rates of the step.
  void on_before_optimizer_step(Fit& fit) override;
  /// Keeps "loss_step" and "lr_step" of every `every_n_steps`-th step.
  void on_after_optimizer_step(Fit& fit) override;
  /// Keeps the scalars of the epoch, and writes the files.
  void on_epoch_end(Fit& fit) override;
  /// Writes the files, so that no checkpoint is ahead of them.
  void on_before_save(Fit& fit) override;

 private:
  class Writing;  // of one fit

  void write();

  std::filesystem::path folder_;
  ScalarLogOptions options_;
  std::unique_ptr<Writing> writing_;  // on rank 0, while a fit is under way
};

}  // namespace sconce
