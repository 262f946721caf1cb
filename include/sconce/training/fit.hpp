#pragma once

#include <ATen/ceil_div.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/optim/metric_mode.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/run_progress.hpp"
#include "sconce/training/stateful.hpp"

namespace sconce {

/// A fit's model and settings, which are constant during the fit.
struct FitSetup {
  torch::nn::Module& model;                        ///< the unwrapped model, on `device`
  torch::optim::Optimizer& optimizer;              ///< the optimizer of the fit
  amp::GradScaler& scaler;                         ///< the trainer's scaler, enabled only in fp16
  torch::Device device;                            ///< the trainer's device
  const distributed::ProcessGroup& process_group;  ///< the processes that train together
  int max_epochs;                                  ///< number of epochs of the complete fit
  int64_t num_training_batches;                    ///< number of batches per epoch, on each rank
  int64_t accumulate_grad_batches;                 ///< number of batches per step

  /// Returns the number of steps needed to process an epoch's first `count` batches. An epoch's
  /// last step may process fewer batches than earlier steps.
  int64_t steps_in(int64_t count) const { return at::ceil_div(count, accumulate_grad_batches); }
};

/// The running fit's state, which is passed to callbacks.
class Fit : public FitSetup {
 public:
  /// Names of the values in each epoch's results, as accepted by `EpochMetrics::at`. A callback
  /// that adds values to the results must add the value names in `setup`. The names of step values
  /// (`StepOutput::values`) are added at the end of the first epoch.
  std::vector<std::string> value_names = {};
  /// Whether the model's steps may return values whose names are not yet in `value_names`.
  bool may_have_values = false;
  /// Maps each value's name to its mode, which specifies whether lower or higher is better.
  /// Contains the losses and all metrics whose `higher_is_better` returns a direction. A callback
  /// that adds values may add their modes in `setup`. A value without a mode is treated as a loss
  /// if its name ends in "loss". For any other value without a mode, callbacks that track the best
  /// value require an explicit mode.
  std::map<std::string, optim::MetricMode> value_modes = {};
  std::vector<EpochMetrics> epochs = {};  ///< results of the finished epochs
  int64_t batch = 0;                      ///< number of finished batches in the current epoch
  /// The last batch's loss, divided by the count if the step returned a count. The loss is a 0-dim
  /// tensor on the device, so reading it waits for the device. Undefined before the first batch.
  torch::Tensor loss = {};
  /// How steps were executed at the end of the last epoch, and why. Examples are "replayed" and
  /// "compiled, because a compiled step takes 12 us, a replay 15 us". Empty if the Trainer does not
  /// capture steps.
  std::string step_mode = {};
  /// All checkpoint parts except the random number generators: the state of the model, the
  /// optimizer, the scaler, and the callbacks. Saving or loading the optimizer part throws an error
  /// if `Stateful` does not support the optimizer.
  NamedStates states = {};

  Fit(const Fit&) = delete;
  Fit& operator=(const Fit&) = delete;

  /// Ends the fit after this step. Other callbacks cannot cancel the stop. In a process group, all
  /// ranks stop after the next step or epoch at which the fit can be saved. `reason` completes the
  /// sentence "the fit stopped: ...", for example "test_loss is nan". The first nonempty reason is
  /// kept.
  void stop(std::string reason = {}) {
    is_stopping_ = true;
    if (stop_reason_.empty()) stop_reason_ = std::move(reason);
  }
  /// Returns whether `stop` was called.
  bool is_stopping() const { return is_stopping_; }
  /// Returns the reason passed to `stop`. If only other ranks stopped the fit, the reason
  /// identifies one of these ranks. Empty if the fit is not stopping or if `stop` was called
  /// without a reason.
  const std::string& stop_reason() const { return stop_reason_; }

  /// Returns the fit's position, including the current epoch's loss and metric sums. This function
  /// is a collective.
  virtual RunProgress progress() const = 0;
  /// Continues from a position returned by `progress`, after `states` have been loaded. Call this
  /// function in `TrainerCallback::load`.
  /// @throw c10::Error if:
  /// - the number of batches per epoch or per step differs from the number at that position;
  /// - the position is mid-epoch, and the metrics differ from the metrics at that position.
  virtual void resume(const RunProgress& progress) = 0;

 protected:
  explicit Fit(const FitSetup& setup) : FitSetup(setup) {}
  ~Fit() = default;

 private:
  bool is_stopping_ = false;
  std::string stop_reason_ = {};
};

}  // namespace sconce
