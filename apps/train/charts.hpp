#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "command_line.hpp"
#include "images.hpp"
#include "sconce/report/confusion_chart.hpp"
#include "sconce/report/training_curve.hpp"

namespace train {

/// What a run measures, and the charts that one with `--out` draws after each epoch: training.svg,
/// and for 2 to 100 classes confusion.svg. A run without `--out` measures the same and draws
/// nothing, since the checkpoints of either are to resume the other.
class Charts {
 public:
  Charts(const CommandLine& line, const Images& images);

  /// What the Trainer is to measure: "acc", and a confusion matrix where one can be drawn.
  sconce::Metrics metrics() const;
  /// Adds what draws, which this must outlive.
  void add_to(std::vector<sconce::TrainerCallback*>& callbacks);

 private:
  std::shared_ptr<sconce::metrics::ConfusionMatrix> matrix_ = {};
  std::optional<sconce::TrainingCurve> curve_ = {};
  std::optional<sconce::ConfusionChart> confusion_ = {};
};

}  // namespace train
