#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// How the scores of the classes become one.
enum class Average {
  micro,     ///< all positions in one score
  macro,     ///< the mean over the classes that occur
  weighted,  ///< the mean over the classes, each as often as it is in the targets
  none       ///< no mean: a score for each class
};

/// What the metrics of classes take; names and defaults are those of `torchmetrics.Accuracy`.
struct ClassificationOptions {
  /// 2 or more; without it, which is for the micro average alone, the logits tell it.
  std::optional<int64_t> num_classes = {};
  Average average = Average::micro;
  int64_t top_k = 1;  ///< an answer is right that is among the k largest logits
  std::optional<int64_t> ignore_index = {};  ///< positions with this target are left out
};

/// What Accuracy, Precision, Recall and F1Score share.
/// `update` takes as preds logits, floating point (N, C, ...), or classes, integers (N, ...), and
/// as target the right classes, integers (N, ...): each position counts, be it a row or a pixel. A
/// label that is no class makes no error, since to notice it would read the device: it is a wrong
/// answer, in the targets a class that nobody found. Of equal logits the first or, for a top_k
/// above 1, any is the larger one; nan is larger than all. An empty batch adds nothing.
/// `compute` returns a float64 share of 1, 0-dim, or (num_classes,) without an average; 0 where it
/// would divide by 0. `update` throws if a type, a size, the number of classes or the device is
/// another than these.
class ClassScore : public Metric {
 public:
  /// Adds a batch, as above.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the score of such sums: of each class, its right answers, all its answers, its
  /// targets.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 protected:
  /// By what the right answers of a class are divided.
  enum class Divisor { answers, targets, mean_of_both };

  /// Makes the metric `name`, which errors begin with.
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  ClassScore(const char* name, Divisor divisor, ClassificationOptions options);

 private:
  const char* name_;
  Divisor divisor_;
  ClassificationOptions options_;
};

/// The share of right answers; without the micro average, by class: the share of its targets that
/// were found. Python: `torchmetrics.Accuracy(task="multiclass")`.
class Accuracy : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit Accuracy(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Accuracy", Divisor::targets, options) {}
};

/// By class, the share of its answers that were right.
/// Python: `torchmetrics.Precision(task="multiclass")`.
class Precision : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit Precision(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Precision", Divisor::answers, options) {}
};

/// By class, the share of its targets that were found.
/// Python: `torchmetrics.Recall(task="multiclass")`.
class Recall : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit Recall(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Recall", Divisor::targets, options) {}
};

/// By class, the harmonic mean of precision and recall.
/// Python: `torchmetrics.F1Score(task="multiclass")`.
class F1Score : public ClassScore {
 public:
  /// @throw c10::Error if num_classes is below 2 or missing, or top_k is not in [1, num_classes].
  explicit F1Score(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::F1Score", Divisor::mean_of_both, options) {}
};

}  // namespace sconce::metrics
