#pragma once

#include <string>

#include "sconce/training/checkpoint.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// What of a fit decides which checkpoint is the best.
struct ModelCheckpointOptions {
  std::string monitor = "test_acc";     ///< "loss" or a name of `EpochMetrics::metrics`; without a
                                        ///< value of that name no checkpoint is the best
  MonitorMode mode = MonitorMode::max;  ///< with min the checkpoint holds the value's negative
};

/// Saves a fit after each epoch and each `TrainerOptions::save_every` steps, and goes on where the
/// checkpoint was, if it resumes: what a fit comes to is, bit for bit on the CPU, the same however
/// often it was stopped, killed and resumed, with the same data, options and number of threads;
/// from three ranks on the first step after it may add their gradients in another order. It keeps
/// the folder from before the first step to the Checkpoint's end. A resumed fit has the learning
/// rates and the other options of optimizer and scheduler from the file, and warns where these were
/// others. Python: `ModelCheckpoint` of Lightning.
class ModelCheckpoint : public TrainerCallback {
 public:
  /// The checkpoint must outlive this.
  explicit ModelCheckpoint(Checkpoint& checkpoint, ModelCheckpointOptions options = {})
      : checkpoint_(checkpoint), options_(std::move(options)) {}

  /// @throw c10::Error if the optimizer is none of sconce's, the checkpoint's group is of another
  /// size than the fit's, or the fit has another number of batches, or a step other ones, than when
  /// it was saved; and what Checkpoint throws.
  void load(Fit& fit) override;
  void save(Fit& fit) override;

 private:
  Checkpoint& checkpoint_;
  ModelCheckpointOptions options_;
};

}  // namespace sconce
