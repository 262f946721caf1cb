#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Options for `ScalarLogger`.
struct ScalarLogOptions {
  /// Number of steps between two values of "loss_step" and "lr_step". If it is 0, neither is
  /// logged.
  int64_t every_n_steps = 0;
  /// Whether to append to the scalars in the folder. Otherwise, the folder must not contain any.
  bool resume = false;
};

/// Logs the scalars of a fit to a folder with `ScalarWriter`, on rank 0. After each epoch, it logs
/// "loss", each metric, "lr" of the epoch's last step ("lr-1" and so on for further parameter
/// groups), "scale" if the scaler is enabled, "examples_per_second", and "seconds". "loss_step" is
/// the loss of the step's last batch on rank 0. The step is the number of optimizer calls since the
/// start of the run, including calls that the scaler skips. The losses of steps stay on the device
/// until the next flush, which reads all of them at once. It flushes after an epoch, before a
/// checkpoint is saved, and at the end of the fit.
///
/// A resumed fit continues from its checkpoint, and scalars of later steps are dropped. Put this
/// callback before a ModelCheckpoint in the list of callbacks, so that a checkpoint never exists
/// before the scalars of its steps. If the files cannot be written, it warns once and the fit
/// continues. The values are written as soon as the disk has space. Python: Lightning's
/// `TensorBoardLogger` and `CSVLogger`, with `LearningRateMonitor`.
class ScalarLogger : public TrainerCallback {
 public:
  /// Constructs a logger that writes to `folder`.
  /// @throw c10::Error if `every_n_steps` is below 0.
  explicit ScalarLogger(std::filesystem::path folder, ScalarLogOptions options = {});
  ~ScalarLogger() override;

  /// Starts the files, or continues them.
  /// @throw c10::Error before the first step, in the same cases as the constructor of
  /// `ScalarWriter`, or if the fit is nested in another one that this object is logging.
  void on_fit_start(Fit& fit) override;
  /// Writes the files.
  void on_fit_end(Fit& fit) override;
  /// Stores the learning rates of the step.
  void on_before_optimizer_step(Fit& fit) override;
  /// Stores "loss_step" and "lr_step" of every `every_n_steps`-th step.
  void on_after_optimizer_step(Fit& fit) override;
  /// Stores the scalars of the epoch and writes the files.
  void on_epoch_end(Fit& fit) override;
  /// Writes the files, so that no checkpoint is ahead of them.
  void on_before_save(Fit& fit) override;

 private:
  class Writing;  // of one fit

  void write();

  std::filesystem::path folder_;
  ScalarLogOptions options_;
  std::unique_ptr<Writing> writing_;  // on rank 0, while a fit is running
};

}  // namespace sconce
