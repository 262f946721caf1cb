#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Options for `ScalarLogger`.
struct ScalarLogOptions {
  /// Number of steps between logged values of "loss_step" and "lr_step". If 0, neither value is
  /// logged.
  int64_t every_n_steps = 0;
  /// Whether to append to existing scalars in the folder. If false, the folder must not contain
  /// scalars.
  bool resume = false;
};

/// Logs the scalars of a fit to a folder with `ScalarWriter`, on rank 0. After each epoch, the
/// logger logs "loss", each metric, "lr" for the epoch's last step ("lr-1" and so on for additional
/// parameter groups), "scale" if the scaler is enabled, "examples_per_second", and "seconds".
/// "loss_step" is the loss of the step's last batch on rank 0. The step number is the number of
/// optimizer calls since the start of the run, including calls skipped by the scaler. Step losses
/// stay on the device until the next flush, which reads all of them at once. The logger flushes
/// after each epoch, before a checkpoint is saved, and at the end of the fit.
///
/// A resumed fit continues from its checkpoint and discards scalars from later steps. Put this
/// callback before a ModelCheckpoint in the list of callbacks, so that the scalars are always
/// written before the checkpoint. If the files cannot be written, the logger warns once and the fit
/// continues. The values are written once disk space is available.
/// Python: Lightning's `TensorBoardLogger` and `CSVLogger`, with `LearningRateMonitor`.
class ScalarLogger : public TrainerCallback {
 public:
  /// Constructs a logger that writes to `folder`.
  /// @throw c10::Error if `every_n_steps` is below 0.
  explicit ScalarLogger(std::filesystem::path folder, ScalarLogOptions options = {});
  ~ScalarLogger() override;

  /// Starts new files or continues existing files.
  /// @throw c10::Error before the first step, in the same cases as the constructor of
  /// `ScalarWriter`, or if the fit is nested in another fit that this object is logging.
  void on_fit_start(Fit& fit) override;
  /// Writes the files.
  void on_fit_end(Fit& fit) override;
  /// Stores the learning rates of the step.
  void on_before_optimizer_step(Fit& fit) override;
  /// Stores "loss_step" and "lr_step" every `every_n_steps` steps.
  void on_after_optimizer_step(Fit& fit) override;
  /// Stores the scalars of the epoch and writes the files.
  void on_epoch_end(Fit& fit) override;
  /// Writes the files before a checkpoint is saved, so that the files are never older than the
  /// checkpoint.
  void on_before_save(Fit& fit) override;

 private:
  class Writing;  // the files of one fit

  void write();

  std::filesystem::path folder_;
  ScalarLogOptions options_;
  std::unique_ptr<Writing> writing_;  // only on rank 0 while a fit is running
};

}  // namespace sconce
