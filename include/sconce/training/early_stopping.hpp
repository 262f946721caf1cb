#pragma once

#include <ATen/core/ivalue.h>

#include <string>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class StateVisitor;  // writes and reads states, in src/

/// Which values of a metric are better.
enum class MonitorMode { min, max };

/// The arguments of Lightning's `EarlyStopping`, with its names and defaults.
struct EarlyStoppingOptions {
  double min_delta = 0;  ///< how much better a value has to be than the best to count as better
  int patience = 3;      ///< epochs in a row without a better value after which the fit stops
  MonitorMode mode = MonitorMode::min;
};

/// Stops a fit that no longer improves, or whose metric is not finite.
/// Python: `EarlyStopping` of Lightning.
class EarlyStopping : public TrainerCallback {
 public:
  /// `monitor` is "loss" or a name of `EpochMetrics::metrics`.
  /// @throw c10::Error if min_delta is negative or nan, or patience negative.
  explicit EarlyStopping(std::string monitor = "test_loss", EarlyStoppingOptions options = {});

  /// A resumed fit that had stopped stays so.
  void on_fit_begin(Fit& fit) override;
  /// @throw c10::Error naming the metrics that are there if that one is not.
  void on_epoch_end(Fit& fit) override;

  std::string name() const override { return "early_stopping"; }
  std::optional<Stateful> state() override { return Stateful(*this); }
  c10::IValue state_dict() const;
  /// @throw c10::Error if a key is missing or of another type.
  void load_state_dict(const c10::IValue& state);

 private:
  struct State {
    int64_t wait_count = 0;  // epochs since the best
    double best_score = 0;
    bool has_stopped = false;
  };
  friend void visit_state(State& state, StateVisitor& visitor);

  std::string monitor_;
  EarlyStoppingOptions options_;
  State state_ = {};
};

}  // namespace sconce
