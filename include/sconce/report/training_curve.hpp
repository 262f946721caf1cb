#pragma once

#include <ATen/core/ivalue.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/report/line_chart.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class BestEffort;    // warns once of what cannot be written, in src/
class StateVisitor;  // writes and reads states, in src/

/// What a training came to, epoch by epoch. Values that are not known are nan, or left out at the
/// end.
struct TrainingHistory {
  std::vector<EpochMetrics> epochs = {};
  std::vector<double> learning_rates = {};  ///< of each epoch's last step
  std::vector<double> scales = {};          ///< of a scaler, after each epoch
};

/// Returns the chart of a training: a panel for the loss, one for each metric, both with the values
/// of training and test, and where they are known one for the learning rate and one for the scale.
/// Python: what the d2l book's `ProgressBoard` shows.
LineChart training_chart(const TrainingHistory& history, std::string title = "Training");

/// Draws the chart of a fit anew after each epoch, on rank 0, with the epochs before a resumed one.
/// The learning rate is the first parameter group's, the scale an enabled scaler's, which is read
/// from its device once an epoch. Where the file cannot be written there is one warning, and the
/// training goes on.
class TrainingCurve : public TrainerCallback {
 public:
  /// An empty `file` draws nothing: a run that is resumed with one then has its learning rates.
  explicit TrainingCurve(std::filesystem::path file, std::string title = "Training");

  /// Forgets an earlier fit, and draws the epochs that are over, if there are any.
  void on_fit_begin(Fit& fit) override;
  void on_before_step(Fit& fit) override;
  void on_epoch_end(Fit& fit) override;

  /// The learning rates and scales of the epochs that are over.
  std::string name() const override { return "training_curve"; }
  std::optional<Stateful> state() override { return Stateful(*this); }
  c10::IValue state_dict() const;
  /// @throw c10::Error if a key is missing or of another type.
  void load_state_dict(const c10::IValue& state);

 private:
  struct State {
    std::vector<double> learning_rates = {};
    std::vector<double> scales = {};
  };
  friend void visit_state(State& state, StateVisitor& visitor);

  void cut_to(size_t epochs);
  void draw(const Fit& fit);

  std::filesystem::path file_;
  std::string title_;
  State state_ = {};
  double learning_rate_ = 0;  // of the last step
  std::shared_ptr<BestEffort> effort_;
};

}  // namespace sconce
