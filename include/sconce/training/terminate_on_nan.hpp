#pragma once

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Stops a fit after an epoch whose loss is not finite. `FitResult::stop_reason` names the model's
/// first non-finite parameter. Parameters are read only in that case, so this adds no cost to a
/// fit. Without this callback, such a fit continues after one warning.
/// Python: `TerminateOnNaN` of Keras, which reads the loss after each batch, and `detect_anomaly`
/// of Lightning's Trainer.
class TerminateOnNaN : public TrainerCallback {
 public:
  /// Stops the fit if the loss of the epoch is not finite.
  void on_epoch_end(Fit& fit) override;
};

}  // namespace sconce
