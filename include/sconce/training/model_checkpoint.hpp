#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sconce/training/checkpoint.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Options of `ModelCheckpoint`.
struct ModelCheckpointOptions {
  /// One of `Fit::value_names`, such as "test_loss", for which "val_loss" stands too. Without a
  /// name it is "test_acc" if the fit has it, and there is no best checkpoint otherwise.
  std::optional<std::string> monitor = {};
  /// Whether the lowest or the highest value is the best. None: the value's own direction, which
  /// the losses and most metrics have (`Fit::value_modes`). With `min` the file's "best" has the
  /// negative of the value.
  std::optional<optim::MetricMode> mode = {};
  int64_t every_n_train_steps = 0;  ///< number of steps between saves within an epoch; 0 saves
                                    ///< after each epoch only
};

/// Saves a fit after each epoch and every `every_n_train_steps` steps. With
/// `CheckpointOptions::resume` a fit continues from the latest checkpoint. On the CPU the result is
/// the same bit for bit however often the fit was stopped, killed and resumed, with the same data,
/// options and number of threads. With three or more ranks the first step after a resumption may
/// add their gradients in another order. The folder is locked from before the first step until the
/// Checkpoint ends. A resumed fit takes the learning rates and the other options of optimizer and
/// scheduler from the file, and warns if they differ. With another `monitor` or `mode` than before
/// it warns, and its first value is the best. Python: `ModelCheckpoint` of Lightning.
class ModelCheckpoint : public TrainerCallback {
 public:
  /// The checkpoint must outlive this object.
  /// @throw c10::Error if every_n_train_steps is negative.
  explicit ModelCheckpoint(Checkpoint& checkpoint, ModelCheckpointOptions options = {});

  /// @throw c10::Error if:
  /// - `monitor` is not one of the names that there are, which the error lists;
  /// - `monitor` has no direction, and the options have no mode;
  /// - the group of the checkpoint and that of the fit have different sizes.
  void setup(Fit& fit) override;
  /// @throw c10::Error if:
  /// - the optimizer is neither one of sconce's nor of LibTorch's and has no `state_dict`;
  /// - the number of batches of an epoch or of a step has changed since the save.
  /// @throw what Checkpoint throws.
  void load(Fit& fit) override;
  /// Returns whether `every_n_train_steps` steps are over.
  bool should_save(const Fit& fit) const override;
  void save(Fit& fit) override;

 private:
  Checkpoint& checkpoint_;
  ModelCheckpointOptions options_;
  // Of the current fit; none: the fit has no value to monitor.
  std::optional<std::pair<std::string, optim::MetricMode>> monitored_ = {};
};

}  // namespace sconce
