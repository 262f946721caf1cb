#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// How to combine the class scores.
enum class Average {
  micro,     ///< one score over all positions
  macro,     ///< mean over the classes that occur
  weighted,  ///< mean over the classes, weighted by the number of targets in each
  none       ///< one score per class
};

/// Options for the classification metrics, with the same names and defaults as
/// `torchmetrics.Accuracy`.
struct ClassificationOptions {
  /// Number of classes, 2 or more. With micro averaging, you may omit `num_classes`, which is then
  /// inferred from the logits.
  std::optional<int64_t> num_classes = {};
  Average average = Average::micro;  ///< how to combine the class scores
  int64_t top_k = 1;  ///< count a prediction as correct if the target is among the k largest logits
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Base class for `Accuracy`, `Precision`, `Recall`, and `F1Score`. `update` accepts `preds` and
/// `target`. `preds` contains either floating-point logits of shape (N, C, ...) or integer classes
/// of shape (N, ...), and `target` contains integer classes of shape (N, ...). Every position, such
/// as a row or a pixel, is counted. `compute` returns a float64 tensor with values from 0 to 1. The
/// tensor is 0-dim with averaging and has shape `(num_classes,)` without averaging. A score that
/// would require a division by 0 is defined as 0.
///
/// A label that is not a valid class does not cause an error, because detecting it would require a
/// device read. An invalid label in `preds` counts as an incorrect prediction, and an invalid label
/// in `target` counts as a class that was not predicted. If `num_classes` is not specified, every
/// nonnegative integer is a class. If logits are tied and `top_k` is 1, the first tied class is
/// predicted. If `top_k` is above 1, the choice among tied classes is arbitrary. NaN is treated as
/// larger than every number. An empty batch does not change the result.
/// @throw c10::Error from `update` if a type, a size, the number of classes, or the device is
/// invalid.
class ClassScore : public Metric {
 public:
  /// Adds a batch.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the score from `sums`, which contains the number of correct predictions for each
  /// class, followed by the prediction and target counts for each class.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true, because higher values are better. The best possible score is 1.
  std::optional<bool> higher_is_better() const override { return true; }

 protected:
  /// The denominator of a class's score. The numerator is the number of correct predictions.
  enum class Divisor { answers, targets, mean_of_both };

  /// Constructs the metric. Error messages begin with `name`.
  /// @throw c10::Error if `num_classes` is below 2 or missing, or if `top_k` is not in
  /// `[1, num_classes]`.
  ClassScore(const char* name, Divisor divisor, ClassificationOptions options);

 private:
  const char* name_;
  Divisor divisor_;
  ClassificationOptions options_;
};

/// Computes the fraction of correct predictions. Except with micro averaging, a class's accuracy is
/// the fraction of its targets that were predicted correctly.
/// Python: `torchmetrics.Accuracy(task="multiclass")`.
class Accuracy : public ClassScore {
 public:
  /// @throw c10::Error if `num_classes` is below 2 or missing, or if `top_k` is not in
  /// `[1, num_classes]`.
  explicit Accuracy(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Accuracy", Divisor::targets, options) {}
};

/// Computes, for each class, the fraction of its predictions that are correct.
/// Python: `torchmetrics.Precision(task="multiclass")`.
class Precision : public ClassScore {
 public:
  /// @throw c10::Error if `num_classes` is below 2 or missing, or if `top_k` is not in
  /// `[1, num_classes]`.
  explicit Precision(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Precision", Divisor::answers, options) {}
};

/// Computes, for each class, the fraction of its targets that were predicted correctly.
/// Python: `torchmetrics.Recall(task="multiclass")`.
class Recall : public ClassScore {
 public:
  /// @throw c10::Error if `num_classes` is below 2 or missing, or if `top_k` is not in
  /// `[1, num_classes]`.
  explicit Recall(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::Recall", Divisor::targets, options) {}
};

/// Computes, for each class, the harmonic mean of precision and recall.
/// Python: `torchmetrics.F1Score(task="multiclass")`.
class F1Score : public ClassScore {
 public:
  /// @throw c10::Error if `num_classes` is below 2 or missing, or if `top_k` is not in
  /// `[1, num_classes]`.
  explicit F1Score(ClassificationOptions options = {})
      : ClassScore("sconce::metrics::F1Score", Divisor::mean_of_both, options) {}
};

}  // namespace sconce::metrics
