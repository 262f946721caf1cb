#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

#include "sconce/optim/metric_mode.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class StateVisitor;  // writes and reads states, in src/

/// Options for `EarlyStopping`: the arguments of Lightning's class with its names and defaults,
/// except for `mode`, which defaults to "min" in Lightning.
struct EarlyStoppingOptions {
  double min_delta = 0;  ///< smallest change that counts as an improvement
  int patience = 3;      ///< number of epochs without improvement before the fit stops
  /// Whether a lower or a higher value is better. If not set, the value's own direction is used,
  /// which the losses and most metrics have (`Fit::value_modes`).
  std::optional<optim::MetricMode> mode = {};
  /// Name of the state in a checkpoint. If a fit has two EarlyStopping callbacks, they need
  /// different names.
  std::string name = "early_stopping";
};

/// Stops a fit when a metric no longer improves or is not finite. Each fit starts from scratch,
/// unless a checkpoint or a call of `load_state_dict` has restored the state before it.
///
///     EarlyStopping stopping("test_loss", {.patience = 5});
///     trainer.fit(model, optimizer, {.train = train, .test = test, .callbacks = {&stopping}});
///
/// Python: `EarlyStopping` of Lightning.
class EarlyStopping : public TrainerCallback {
 public:
  /// `monitor` is one of `Fit::value_names`, such as "loss" or "test_acc". "val_acc" is an alias of
  /// "test_acc".
  /// @throw c10::Error if `min_delta` is negative or NaN, or if `patience` is negative.
  explicit EarlyStopping(std::string monitor = "test_loss", EarlyStoppingOptions options = {});

  /// Discards the state of the previous fit.
  /// @throw c10::Error if `monitor` is not one of the available names, which the error lists, or if
  /// it has no direction and the options have no mode.
  void setup(Fit& fit) override;
  /// Stops a resumed fit that had already stopped. If the restored state belongs to a different
  /// metric or mode, warns and discards the previous best instead.
  void on_fit_start(Fit& fit) override;
  /// Compares the value of the epoch with the best one.
  void on_epoch_end(Fit& fit) override;

  /// Returns the name from the options.
  std::string name() const override { return options_.name; }
  /// Returns this object as a part of a checkpoint.
  std::optional<Stateful> state() override { return Stateful(*this); }
  /// Returns a dict with "wait_count", "best_score", "has_stopped", "monitor", and "mode".
  c10::IValue state_dict() const;
  /// Restores a state returned by `state_dict`.
  /// @throw c10::Error if a key is missing or a value has the wrong type.
  void load_state_dict(const c10::IValue& state);

 private:
  struct State {
    int64_t wait_count = 0;  // epochs since the best
    double best_score = 0;
    bool has_stopped = false;
    // The metric of the score. Earlier versions did not save this.
    std::optional<std::string> monitor = {};
    std::optional<optim::MetricMode> mode = {};
  };
  friend void visit_state(State& state, StateVisitor& visitor);

  State initial_state() const;
  std::string reason(const Fit& fit) const;

  EarlyStoppingOptions options_;
  std::string requested_monitor_;
  std::string monitor_;     // as given, or what it stood for in the last fit
  optim::MetricMode mode_;  // from the options, or from the last fit
  State state_;
  bool is_restored_ = false;  // whether the state was loaded since the last fit began
};

}  // namespace sconce
