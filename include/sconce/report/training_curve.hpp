#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/report/line_chart.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class BestEffort;  // warns once if a file cannot be written; defined in src/

/// A training run's per-epoch values. Unknown values are NaN, except that unknown values at the end
/// of a list may be omitted.
struct TrainingHistory {
  std::vector<EpochMetrics> epochs = {};    ///< loss and metrics of each epoch
  std::vector<double> learning_rates = {};  ///< learning rate at the last step of each epoch
  std::vector<double> scales = {};          ///< scale of the gradient scaler after each epoch
};

/// Returns a chart of a training run. The loss and each metric have separate panels with training
/// and test values. The learning rate and the loss scale also have panels if their values are
/// known. Python: the d2l book's `ProgressBoard`.
LineChart training_chart(const TrainingHistory& history, std::string title = "Training");

/// On rank 0, draws a fit's chart after each epoch. The plotted learning rate is the first
/// parameter group's value at the epoch's last step. If the scaler is enabled, its scale is read
/// from the device once per epoch. A resumed fit also plots the earlier epochs, but without
/// learning rates and scales, because checkpoints do not store them. If the file cannot be written,
/// the callback warns once and the fit continues.
class TrainingCurve : public TrainerCallback {
 public:
  /// Constructs a callback that writes the chart as an SVG to `file`, whose folder must exist.
  explicit TrainingCurve(std::filesystem::path file, std::string title = "Training");

  /// Returns the values shown in the chart.
  const TrainingHistory& history() const { return history_; }

  /// Initializes the chart with the epochs completed before this fit, and plots them if there are
  /// any.
  /// @throw c10::Error if this object is already drawing an enclosing fit.
  void on_fit_start(Fit& fit) override;
  /// Finishes the fit's chart but keeps the plotted values.
  void on_fit_end(Fit& fit) override;
  /// Reads the step's learning rate.
  void on_before_optimizer_step(Fit& fit) override;
  /// Adds the epoch's values and draws the chart.
  void on_epoch_end(Fit& fit) override;

 private:
  void draw(const Fit& fit);

  std::filesystem::path file_;
  std::string title_;
  TrainingHistory history_ = {};
  double learning_rate_ = 0;  // of the last step
  bool is_active_ = false;
  std::shared_ptr<BestEffort> effort_;
};

}  // namespace sconce
