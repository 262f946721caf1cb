#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/report/line_chart.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class BestEffort;  // warns once of a file that cannot be written, in src/

/// The values of a training for each epoch. Unknown values are nan, or left out at the end.
struct TrainingHistory {
  std::vector<EpochMetrics> epochs = {};    ///< Loss and metrics of each epoch
  std::vector<double> learning_rates = {};  ///< Of each epoch's last step
  std::vector<double> scales = {};          ///< Of the gradient scaler, after each epoch
};

/// Returns the chart of a training: a panel for the loss and one for each metric, with the values
/// of training and test, and panels for the learning rate and the scale if they are known.
/// Python: `ProgressBoard` of the d2l book.
LineChart training_chart(const TrainingHistory& history, std::string title = "Training");

/// Draws the chart of a fit after each epoch, on rank 0. The learning rate is that of the first
/// parameter group at the last step of the epoch. If the scaler is enabled, its scale is read from
/// the device once an epoch. A resumed fit also draws the earlier epochs, but without learning
/// rates and scales, because checkpoints do not store them. If the file cannot be written, this
/// warns once and the fit goes on.
class TrainingCurve : public TrainerCallback {
 public:
  /// `file` is the SVG, in an existing folder.
  explicit TrainingCurve(std::filesystem::path file, std::string title = "Training");

  /// The values that the chart shows.
  const TrainingHistory& history() const { return history_; }

  /// Starts with the epochs before the fit, and draws them if there are any.
  /// @throw c10::Error if the fit is within another one that this draws.
  void on_fit_start(Fit& fit) override;
  /// Ends the fit; the values stay.
  void on_fit_end(Fit& fit) override;
  /// Reads the learning rate of the step.
  void on_before_optimizer_step(Fit& fit) override;
  /// Adds the epoch, and draws the chart.
  void on_epoch_end(Fit& fit) override;

 private:
  void draw(const Fit& fit);

  std::filesystem::path file_;
  std::string title_;
  TrainingHistory history_ = {};
  double learning_rate_ = 0;  // of the last step
  bool is_under_way_ = false;
  std::shared_ptr<BestEffort> effort_;
};

}  // namespace sconce
