#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// How the scores of the classes are combined.
enum class Average {
  micro,     ///< one score over all positions
  macro,     ///< mean over the classes that occur
  weighted,  ///< mean over the classes, weighted by their number of targets
  none       ///< a score for each class
};

/// Options of the metrics of classes, with the names and defaults of `torchmetrics.Accuracy`.
struct ClassificationOptions {
  /// Number of classes, 2 or more. Optional for the micro average, which then takes it from the
  /// logits.
  std::optional<int64_t> num_classes = {};
  Average average = Average::micro;  ///< how the scores of the classes are combined
  int64_t top_k = 1;  ///< number of largest logits among which the target counts as found
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Base class of Accuracy, Precision, Recall and F1Score. `update` takes preds, which are logits of
/// floating point `(N, C, ...)` or integer classes `(N, ...)`, and target, integer classes `(N,
/// ...)`. Each position counts, be it a row or a pixel. A label that is not a class gives no error,
/// because finding it would read the device: in preds it is a wrong answer, in target a class that
/// was not found. Without num_classes all integers from 0 on are classes. Of equal logits the first
/// counts as the largest, or any of them if top_k is above 1. nan is larger than all numbers. An
/// empty batch adds nothing. `compute` returns a float64 from 0 to 1, 0-dim, or `(num_classes,)`
/// without an average. It is 0 where it would divide by 0.
/// @throw c10::Error from `update` if a type, a size, the number of classes or the device is wrong.
class ClassScore : public Metric {
 public:
  /// Adds a batch.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the score for sums of this layout: for each class the right answers, all answers, and
  /// the targets.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true: 1 is the best score.
  std::optional<bool> higher_is_better() const override { return true; }

 protected:
  /// The divisor of the number of right answers of a class.
  enum class Divisor { answers, targets, mean_of_both };

  /// Makes the metric `name`, which errors begin with.
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  ClassScore(const char* name, Divisor divisor, ClassificationOptions options);

 private:
  const char* name_;
  Divisor divisor_;
  ClassificationOptions options_;
};

/// The share of right answers. Without the micro average it is, for each class, the share of its
/// targets that were found. Python: `torchmetrics.Accuracy(task="multiclass")`.
class Accuracy : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit Accuracy(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Accuracy", Divisor::targets, options) {}
};

/// For each class, the share of its answers that are right.
/// Python: `torchmetrics.Precision(task="multiclass")`.
class Precision : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit Precision(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Precision", Divisor::answers, options) {}
};

/// For each class, the share of its targets that were found.
/// Python: `torchmetrics.Recall(task="multiclass")`.
class Recall : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit Recall(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Recall", Divisor::targets, options) {}
};

/// For each class, the harmonic mean of precision and recall.
/// Python: `torchmetrics.F1Score(task="multiclass")`.
class F1Score : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit F1Score(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::F1Score", Divisor::mean_of_both, options) {}
};

}  // namespace sconce::metrics
