#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <vector>

#include "command_line.hpp"
#include "images.hpp"
#include "sconce/report/confusion_chart.hpp"
#include "sconce/report/memory_peaks.hpp"
#include "sconce/report/profile.hpp"
#include "sconce/report/progress_bar.hpp"
#include "sconce/report/scalar_log.hpp"
#include "sconce/report/training_curve.hpp"

namespace train {

constexpr auto trace_name = "trace.json";  ///< in the folder of `--out`

/// What a run measures, and what shows it while it trains: the progress bar, the charts that
/// `--out` redraws after each epoch (training.svg, and for 2 to 100 classes confusion.svg), the
/// scalars, the trace and the peaks of memory. A run without `--out` measures the same as one with
/// it, since the checkpoints of either are to resume the other.
class Reports {
 public:
  /// The stream must outlive this.
  Reports(const CommandLine& line, const Images& images, std::ostream& out);

  /// The metrics for the Trainer: "acc", and a confusion matrix if one can be drawn.
  sconce::Metrics metrics() const;

  /// The callbacks, which stand before those that save, since a checkpoint must not be ahead of
  /// the scalars. This must outlive them.
  std::vector<sconce::TrainerCallback*> callbacks();

 private:
  void add_charts(const CommandLine& line, const Images& images);

  std::shared_ptr<sconce::metrics::ConfusionMatrix> matrix_ = {};
  sconce::ProgressBar bar_;
  std::optional<sconce::TrainingCurve> curve_ = {};
  std::optional<sconce::ConfusionChart> confusion_ = {};
  std::optional<sconce::ScalarLog> scalars_ = {};
  std::optional<sconce::StepTrace> trace_ = {};
  std::optional<sconce::MemoryPeaks> memory_ = {};
};

}  // namespace train
