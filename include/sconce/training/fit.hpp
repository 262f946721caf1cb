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

/// Describes the model and the settings of a fit. Constant during the fit.
struct FitSetup {
  torch::nn::Module& model;                        ///< the unwrapped model, on `device`
  torch::optim::Optimizer& optimizer;              ///< the optimizer of the fit
  amp::GradScaler& scaler;                         ///< the trainer's scaler, enabled only in fp16
  torch::Device device;                            ///< the trainer's device
  const distributed::ProcessGroup& process_group;  ///< the processes that train together
  int max_epochs;                                  ///< number of epochs of the complete fit
  int64_t num_training_batches;                    ///< number of batches per epoch, on each rank
  int64_t accumulate_grad_batches;                 ///< number of batches per step

  /// Returns the number of steps that process the first `count` batches of an epoch. The last step
  /// of an epoch may process fewer batches than the other steps.
  int64_t steps_in(int64_t count) const { return at::ceil_div(count, accumulate_grad_batches); }
};

/// The state of a running fit that is passed to callbacks.
class Fit : public FitSetup {
 public:
  /// The names under which `EpochMetrics::at` finds values in the results of each epoch. A callback
  /// that adds values to the results must add their names in `setup`. The names of step values
  /// (`StepOutput::values`) are added at the end of the first epoch.
  std::vector<std::string> value_names = {};
  /// Whether the model's steps may return values with names that are not yet in `value_names`.
  bool may_have_values = false;
  /// Maps each name to whether a lower or a higher value is better. Contains the losses, and all
  /// metrics for which `higher_is_better` returns a direction. A callback that adds values may add
  /// their modes in `setup`. A value without a mode is treated as a loss if its name ends in
  /// "loss". For any other value, callbacks that track the best value require an explicit mode.
  std::map<std::string, optim::MetricMode> value_modes = {};
  std::vector<EpochMetrics> epochs = {};  ///< results of the finished epochs
  int64_t batch = 0;                      ///< number of finished batches in the current epoch
  /// Loss of the last batch. If the step returned a count, the loss is divided by that count. The
  /// loss is a 0-dim tensor on the device, so reading it waits for the device. Undefined before the
  /// first batch.
  torch::Tensor loss = {};
  /// How steps were executed at the end of the last epoch, and why. Examples are "replayed" and
  /// "compiled, because a compiled step takes 12 us, a replay 15 us". Empty if the Trainer does not
  /// capture steps.
  std::string step_mode = {};
  /// All parts of a checkpoint except the random number generators: the state of the model, the
  /// optimizer, the scaler, and the callbacks. Accessing the optimizer part throws an error if
  /// `Stateful` does not support the optimizer.
  NamedStates states = {};

  Fit(const Fit&) = delete;
  Fit& operator=(const Fit&) = delete;

  /// Ends the fit after this step. Other callbacks cannot cancel the stop. In a process group, all
  /// ranks stop at the next step or end of an epoch at which the fit can be saved. `reason`
  /// completes the sentence "the fit stopped: ...", for example "test_loss is nan". The first
  /// nonempty reason is kept.
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

  /// Returns the position of the fit, including the sums of the loss and the metrics in the current
  /// epoch. This function is a collective.
  virtual RunProgress progress() const = 0;
  /// Continues from a position returned by `progress`, after `states` have been loaded. Call this
  /// function in `TrainerCallback::load`.
  /// @throw c10::Error if the number of batches per epoch or per step, or the metrics within an
  /// epoch, differ from the values at that position.
  virtual void resume(const RunProgress& progress) = 0;

 protected:
  explicit Fit(const FitSetup& setup) : FitSetup(setup) {}
  ~Fit() = default;

 private:
  bool is_stopping_ = false;
  std::string stop_reason_ = {};
};

}  // namespace sconce
