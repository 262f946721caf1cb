#pragma once

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

#include "sconce/optim/metric_mode.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class StateVisitor;  // writes and reads states, in src/

/// Options of `EarlyStopping`: the arguments of Lightning's class with its names and defaults,
/// except for `mode`, which is "min" in Lightning.
struct EarlyStoppingOptions {
  double min_delta = 0;  ///< smallest change that counts as an improvement
  int patience = 3;      ///< number of epochs without improvement before the fit stops
  /// Whether a lower or a higher value is better. None: the value's own direction, which the losses
  /// and most metrics have (`Fit::value_modes`).
  std::optional<optim::MetricMode> mode = {};
  /// Name of the state in a checkpoint. Two EarlyStopping of one fit need different names.
  std::string name = "early_stopping";
};

/// Stops a fit if a metric no longer improves or is not finite. Each fit starts afresh, unless a
/// checkpoint or a call of `load_state_dict` before it restores the state.
/// Python: `EarlyStopping` of Lightning.
class EarlyStopping : public TrainerCallback {
 public:
  /// `monitor` is one of `Fit::value_names`, such as "loss" or "test_acc". "val_acc" stands for
  /// "test_acc".
  /// @throw c10::Error if min_delta is negative or nan, or patience is negative.
  explicit EarlyStopping(std::string monitor = "test_loss", EarlyStoppingOptions options = {});

  /// Forgets the fit before.
  /// @throw c10::Error if `monitor` is not one of the names that there are, which the error lists,
  /// or if it has no direction and the options have no mode.
  void setup(Fit& fit) override;
  /// Stops a resumed fit that had stopped before. If the restored state is that of another metric
  /// or mode, warns and forgets the old best instead.
  void on_fit_start(Fit& fit) override;
  /// Compares the value of the epoch with the best one.
  void on_epoch_end(Fit& fit) override;

  /// Returns the name of the options.
  std::string name() const override { return options_.name; }
  /// Returns this object as a part of a checkpoint.
  std::optional<Stateful> state() override { return Stateful(*this); }
  /// Returns a dict of "wait_count", "best_score", "has_stopped", "monitor" and "mode".
  c10::IValue state_dict() const;
  /// Restores the state of a dict from `state_dict`.
  /// @throw c10::Error if a key is missing or a value has another type.
  void load_state_dict(const c10::IValue& state);

 private:
  struct State {
    int64_t wait_count = 0;  // epochs since the best
    double best_score = 0;
    bool has_stopped = false;
    // Of what the score is. An earlier version did not save them.
    std::optional<std::string> monitor = {};
    std::optional<optim::MetricMode> mode = {};
  };
  friend void visit_state(State& state, StateVisitor& visitor);

  State initial_state() const;
  std::string reason(const Fit& fit) const;

  EarlyStoppingOptions options_;
  std::string given_monitor_;
  std::string monitor_;     // the given one, or what it stands for in the last fit
  optim::MetricMode mode_;  // of the options, or of the last fit
  State state_;
  bool is_restored_ = false;  // whether the state was loaded since the last fit began
};

}  // namespace sconce
