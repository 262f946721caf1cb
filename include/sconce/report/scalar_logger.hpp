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

/// On rank 0, logs a fit's scalars to a folder with `ScalarWriter`. After each epoch, the logger
/// records "loss", each metric, "examples_per_second", "seconds", the learning rate at the epoch's
/// last step ("lr", then "lr-1" and so on for additional parameter groups), and the loss scale
/// ("scale") if the scaler is enabled. The value of "loss_step" is rank 0's loss for the step's
/// last batch. The step number is the number of optimizer calls since the start of the run,
/// including calls skipped by the scaler. Step losses stay on the device until the next flush,
/// which reads all of them at once. The logger flushes after each epoch, before a checkpoint is
/// saved, and at the end of the fit.
///
/// A resumed fit continues from its checkpoint and discards scalars from later steps. In the
/// callback list, place this callback before any ModelCheckpoint so that scalars are always written
/// before the checkpoint. If the files cannot be written, the logger warns once and the fit
/// continues. The values are written once disk space becomes available.
/// Python: Lightning's `TensorBoardLogger` and `CSVLogger`, with `LearningRateMonitor`.
class ScalarLogger : public TrainerCallback {
 public:
  /// Constructs a logger that writes to `folder`.
  /// @throw c10::Error if `every_n_steps` is below 0.
  explicit ScalarLogger(std::filesystem::path folder, ScalarLogOptions options = {});
  ~ScalarLogger() override;

  /// Starts a new log or continues the folder's existing log.
  /// @throw c10::Error before the first step if:
  /// - this object is already logging an enclosing fit;
  /// - the `ScalarWriter` constructor throws.
  void on_fit_start(Fit& fit) override;
  /// Writes the files.
  void on_fit_end(Fit& fit) override;
  /// Stores the step's learning rates.
  void on_before_optimizer_step(Fit& fit) override;
  /// Stores "loss_step" and "lr_step" every `every_n_steps` steps.
  void on_after_optimizer_step(Fit& fit) override;
  /// Stores the epoch's scalars and writes the files.
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
