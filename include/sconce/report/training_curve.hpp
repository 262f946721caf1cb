#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/report/line_chart.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class BestEffort;  // warns once of a file that cannot be written, in src/

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

/// Draws the chart of a fit anew after each epoch, on rank 0. The learning rate is the first
/// parameter group's at the last step of the epoch. The scale is that of an enabled scaler, which
/// is read from its device once an epoch. A resumed fit draws the epochs before it too, without
/// their learning rates and scales, which checkpoints do not keep. If the file cannot be written,
/// this warns once and the fit goes on.
class TrainingCurve : public TrainerCallback {
 public:
  explicit TrainingCurve(std::filesystem::path file, std::string title = "Training");

  /// The values that the chart shows.
  const TrainingHistory& history() const { return history_; }

  void on_fit_begin(Fit& fit) override;
  void on_before_step(Fit& fit) override;
  void on_epoch_end(Fit& fit) override;

 private:
  void draw(const Fit& fit);

  std::filesystem::path file_;
  std::string title_;
  TrainingHistory history_ = {};
  double learning_rate_ = 0;  // of the last step
  std::shared_ptr<BestEffort> effort_;
};

}  // namespace sconce
