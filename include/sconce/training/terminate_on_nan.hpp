#pragma once

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Stops a fit after an epoch with a non-finite loss. `FitResult::stop_reason` contains the name of
/// the model's first non-finite parameter. Parameters are read only if the loss is non-finite, so
/// this callback does not slow down a fit. Without this callback, the fit warns once and continues.
/// Python: Keras's `TerminateOnNaN`, which reads the loss after each batch, and `detect_anomaly` in
/// Lightning's Trainer.
class TerminateOnNaN : public TrainerCallback {
 public:
  /// Stops the fit if the epoch's loss is not finite.
  void on_epoch_end(Fit& fit) override;
};

}  // namespace sconce
