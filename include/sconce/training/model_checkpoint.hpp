#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sconce/training/checkpoint.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Options for `ModelCheckpoint`.
struct ModelCheckpointOptions {
  /// A name from `Fit::value_names`, such as "test_loss" (or its alias "val_loss"). Defaults to
  /// "test_acc" if that value is available. Otherwise, there is no best checkpoint.
  std::optional<std::string> monitor = {};
  /// Whether the lowest or the highest value is best. Defaults to the monitored value's direction,
  /// which is defined for losses and most metrics (`Fit::value_modes`). In `min` mode, the value
  /// stored as "best" in the file is negated.
  std::optional<optim::MetricMode> mode = {};
  int64_t every_n_train_steps = 0;  ///< number of steps between saves within an epoch; 0 saves only
                                    ///< after each epoch
};

/// Saves a fit after each epoch and every `every_n_train_steps` steps. If
/// `CheckpointOptions::resume` is set, a fit continues from the latest checkpoint.
///
///     Checkpoint checkpoint("run", {.resume = true});
///     ModelCheckpoint saving(checkpoint, {.every_n_train_steps = 100});
///     trainer.fit(model, optimizer, {.train = batches, .callbacks = {&saving}});
///
/// On the CPU, given the same data, options, and number of threads, the result is bitwise identical
/// regardless of how often the fit is stopped, killed, and resumed. With three or more ranks, the
/// first step after resuming may sum the ranks' gradients in a different order. The folder is
/// locked before the first step and stays locked until the Checkpoint is destroyed. A resumed fit
/// restores the optimizer and scheduler options, including learning rates, from the file, and warns
/// if the restored options differ from the current options. If `monitor` or `mode` has changed, the
/// callback warns, and the next monitored value becomes the best value. Python: Lightning's
/// `ModelCheckpoint`.
class ModelCheckpoint : public TrainerCallback {
 public:
  /// Constructs a callback that saves to `checkpoint`, which must outlive this object.
  /// @throw c10::Error if `every_n_train_steps` is negative.
  explicit ModelCheckpoint(Checkpoint& checkpoint, ModelCheckpointOptions options = {});

  /// @throw c10::Error if:
  /// - `monitor` is not one of the available names, which are listed in the message;
  /// - `monitor` has no direction, and no mode is set in the options;
  /// - the process groups of the checkpoint and the fit have different sizes.
  void setup(Fit& fit) override;
  /// @throw c10::Error if:
  /// - the optimizer is from neither sconce nor LibTorch and does not define `state_dict`;
  /// - the number of batches per epoch or per step has changed since the save.
  /// @throw any exception thrown by Checkpoint.
  void load(Fit& fit) override;
  /// Returns whether the number of finished steps in the epoch is a multiple of
  /// `every_n_train_steps`.
  bool should_save(const Fit& fit) const override;
  void save(Fit& fit) override;

 private:
  Checkpoint& checkpoint_;
  ModelCheckpointOptions options_;
  // The value monitored in the current fit. Empty if there is no value to monitor.
  std::optional<std::pair<std::string, optim::MetricMode>> monitored_ = {};
};

}  // namespace sconce
