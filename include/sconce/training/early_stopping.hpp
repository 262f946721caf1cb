#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

#include "sconce/optim/metric_mode.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class StateVisitor;  // writes and reads states, in src/

/// Options for `EarlyStopping`, with the same names and defaults as Lightning's class, except for
/// `mode`, which defaults to "min" in Lightning.
struct EarlyStoppingOptions {
  double min_delta = 0;  ///< smallest change that counts as an improvement
  int patience = 3;      ///< number of epochs without improvement before the fit stops
  /// Whether a lower or a higher value is better. Defaults to the monitored value's direction,
  /// which is defined for losses and most metrics (`Fit::value_modes`).
  std::optional<optim::MetricMode> mode = {};
  /// The name under which a checkpoint stores the state. Two EarlyStopping callbacks in the same
  /// fit must have different names.
  std::string name = "early_stopping";
};

/// Stops a fit when a metric no longer improves or is not finite. Each fit starts from scratch
/// unless a checkpoint or a call to `load_state_dict` has restored the state.
///
///     EarlyStopping stopping("test_loss", {.patience = 5});
///     trainer.fit(model, optimizer, {.train = train, .test = test, .callbacks = {&stopping}});
///
/// Python: Lightning's `EarlyStopping`.
class EarlyStopping : public TrainerCallback {
 public:
  /// Constructs a callback. `monitor` is one of `Fit::value_names`, such as "loss" or "test_acc"
  /// (or its alias "val_acc").
  /// @throw c10::Error if `min_delta` is negative or NaN, or if `patience` is negative.
  explicit EarlyStopping(std::string monitor = "test_loss", EarlyStoppingOptions options = {});

  /// Discards the previous fit's state.
  /// @throw c10::Error if:
  /// - `monitor` is not one of the available names, which are listed in the message;
  /// - `monitor` has no direction, and no mode is set in the options.
  void setup(Fit& fit) override;
  /// If the restored state shows that the fit had already stopped, stops the resumed fit
  /// immediately. If the restored state belongs to a different metric or mode, warns and discards
  /// the previous best value instead.
  void on_fit_start(Fit& fit) override;
  /// Compares this epoch's value with the best value so far.
  void on_epoch_end(Fit& fit) override;

  /// Returns the name from the options.
  std::string name() const override { return options_.name; }
  /// Returns this object as a checkpoint part.
  std::optional<Stateful> state() override { return Stateful(*this); }
  /// Returns a dict with "wait_count", "best_score", "has_stopped", "monitor", and "mode".
  c10::IValue state_dict() const;
  /// Restores a state dict returned by `state_dict`.
  /// @throw c10::Error if a key is missing or a value has an invalid type.
  void load_state_dict(const c10::IValue& state);

 private:
  struct State {
    int64_t wait_count = 0;  // number of epochs since the best value
    double best_score = 0;
    bool has_stopped = false;
    // The metric to which the score belongs. Earlier versions did not save this.
    std::optional<std::string> monitor = {};
    std::optional<optim::MetricMode> mode = {};
  };
  friend void visit_state(State& state, StateVisitor& visitor);

  State initial_state() const;
  std::string reason(const Fit& fit) const;

  EarlyStoppingOptions options_;
  std::string requested_monitor_;
  std::string monitor_;     // name passed to the constructor, or the name it resolved to in the
                            // last fit
  optim::MetricMode mode_;  // from the options, or from the last fit
  State state_;
  bool is_restored_ = false;  // whether the state was loaded since the last fit started
};

}  // namespace sconce
