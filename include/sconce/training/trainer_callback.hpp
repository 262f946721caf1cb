#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/stateful.hpp"

namespace sconce {

/// A running fit, for its callbacks.
struct Fit {
  torch::nn::Module& model;                        ///< the model without a wrapper, on `device`
  torch::optim::Optimizer& optimizer;              ///< the optimizer of the fit
  amp::GradScaler& scaler;                         ///< the trainer's scaler, enabled in fp16 only
  torch::Device device;                            ///< the trainer's device
  const distributed::ProcessGroup& process_group;  ///< the processes that train together
  int max_epochs;                                  ///< number of epochs when the fit is complete
  int64_t batches;                                 ///< number of batches of an epoch, on each rank
  int64_t accumulate;                              ///< number of batches of a step

  /// The names that `EpochMetrics::at` will find in the results of each epoch. A callback that adds
  /// values to the results adds their names in `setup`.
  std::vector<std::string> value_names = {};
  std::vector<EpochMetrics> epochs = {};  ///< results of the finished epochs
  int64_t batch = 0;                      ///< number of finished batches of the current epoch
  torch::Tensor loss = {};  ///< loss of the last batch, 0-dim, on the device, so that reading it
                            ///< waits; undefined before the first batch

  /// A callback sets it to end the fit after this step. In a process group the fit ends on all
  /// ranks, at the next step or end of an epoch at which it can be saved.
  bool should_stop = false;

  /// The parts of a checkpoint besides the random generators: the model, the optimizer, the scaler
  /// and the callbacks' states. The optimizer's part throws if `Stateful` refuses the optimizer.
  NamedStates states = {};
  /// The position of the fit, with the metrics of the current epoch. Reading it is a collective.
  /// Set `batch` to the value that it had at the save before you load it.
  Stateful progress;
};

/// Base class of callbacks. Each function is called for all callbacks in the given order, on every
/// rank of a process group. `on_fit_end` and `on_test_end` are called in reverse order, also after
/// an exception, for the callbacks whose `on_fit_begin` or `on_test_begin` has returned.
/// Python: `Callback` of Lightning.
class TrainerCallback {
 public:
  virtual ~TrainerCallback() = default;

  /// Checks what the callback needs of the fit, and forgets earlier fits. Called before all others,
  /// when the fit has changed nothing yet: the model may be on another device.
  virtual void setup(Fit&) {}
  /// Restores the position of an earlier fit, if the callback has one. Called before all that
  /// follow.
  virtual void load(Fit&) {}
  /// Called before the first step. `fit.epochs` and `fit.batch` have the position of a resumed fit.
  virtual void on_fit_begin(Fit&) {}
  /// Called at the end of the fit, also after an exception.
  virtual void on_fit_end(Fit&) {}
  /// Called after the backward pass, before gradients are unscaled and clipped.
  virtual void on_before_step(Fit&) {}
  /// Called after each step of the optimizer, including steps that the scaler skips.
  virtual void on_after_step(Fit&) {}
  /// Called after an epoch and its test. `fit.epochs` has their results.
  virtual void on_epoch_end(Fit&) {}
  /// Called before a test.
  virtual void on_test_begin(Fit&) {}
  /// Called after a test, also after an exception.
  virtual void on_test_end(Fit&) {}
  /// Called after all other functions of all callbacks: after each epoch, after each `save_every`
  /// steps, and before a fit stops. If `fit.batch` is 0, `fit.epochs.back()` has the metrics of the
  /// last epoch.
  virtual void save(Fit&) {}

  /// Returns the name of the callback's part of a checkpoint. Empty by default.
  virtual std::string name() const { return {}; }
  /// Returns the state of the callback for a checkpoint, or nothing, the default, if it has none.
  virtual std::optional<Stateful> state() { return {}; }
};

}  // namespace sconce
