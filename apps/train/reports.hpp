#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

#include "command_line.hpp"
#include "sconce/report/confusion_matrix_chart.hpp"
#include "sconce/report/profile.hpp"
#include "sconce/report/progress_bar.hpp"
#include "sconce/report/scalar_logger.hpp"
#include "sconce/report/training_curve.hpp"
#include "task.hpp"

namespace train {

// A file in the `--out` folder.
constexpr auto curve_name = "training.svg";
constexpr auto confusion_name = "confusion.svg";
constexpr auto trace_name = "trace.json";

/// The metrics and the reports of a run: the progress bar, the charts in the `--out` folder
/// (training.svg, and confusion.svg for 2 to 100 classes), the scalars, and the trace. A run
/// without `--out` computes the same metrics, so a run can be resumed from a checkpoint with or
/// without `--out`.
class Reports {
 public:
  /// The stream must outlive this object.
  Reports(const CommandLine& line, const Task& task, std::ostream& out);

  /// Returns the metrics for the Trainer. For classification, these are "acc" and, if one can be
  /// drawn, a confusion matrix. For regression, they are "mae", which is the mean absolute error in
  /// the units of the target, and "r2".
  sconce::Metrics metrics() const;

  /// Returns the callbacks. This object must outlive them.
  sconce::Callbacks callbacks();

 private:
  void add_charts(const CommandLine& line, const Task& task);

  std::optional<double> target_std_ = {};  // for a regression
  std::shared_ptr<sconce::metrics::ConfusionMatrix> matrix_ = {};
  sconce::ProgressBar bar_;
  std::optional<sconce::TrainingCurve> curve_ = {};
  std::optional<sconce::ConfusionMatrixLogger> confusion_ = {};
  std::optional<sconce::ScalarLogger> scalars_ = {};
  std::optional<sconce::StepTrace> trace_ = {};
};

}  // namespace train
