#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// The thresholds at which a curve is evaluated: either the number of evenly spaced thresholds from
/// 0 to 1 (at least 2), or a list of thresholds from 0 to 1 in ascending order, such as
/// `std::vector{0.25, 0.5}`. Python also accepts None, which stores all batches.
using Thresholds = std::variant<int64_t, std::vector<double>>;

/// Options for `BinaryAUROC`, with the same names as in torchmetrics.
struct BinaryAUROCOptions {
  /// False positive rate up to which the area is computed, above 0 and at most 1. The area is
  /// scaled so that 0.5 corresponds to random guessing and 1 to a perfect score (McClish).
  std::optional<double> max_fpr = {};
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Options for `BinaryAveragePrecision`, with the same names as in torchmetrics.
struct BinaryAveragePrecisionOptions {
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Options for `MulticlassAUROC` and `MulticlassAveragePrecision`, with the same names as in
/// torchmetrics.
struct MulticlassCurveOptions {
  int64_t num_classes = 0;                   ///< number of classes, 2 or more
  Average average = Average::macro;          ///< how to combine the areas; micro is not supported
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Options for `MultilabelAUROC` and `MultilabelAveragePrecision`, with the same names as in
/// torchmetrics.
struct MultilabelCurveOptions {
  int64_t num_labels = 0;                    ///< number of labels, 2 or more
  Average average = Average::macro;          ///< how to combine the areas
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Base class for metrics that compute the area under a curve evaluated at thresholds. `update`
/// accepts floating-point `preds` and a `target` with these shapes:
/// - for one label: both of shape (N, ...), with targets 0, 1, and `ignore_index`;
/// - for several labels: both of shape `(N, num_labels, ...)`, with targets 0, 1, and
///   `ignore_index`;
/// - for classes: `preds` of shape `(N, num_classes, ...)` and an integer `target` of shape (N,
///   ...).
///
/// `preds` contains probabilities. If any value in a batch is outside [0, 1], the whole batch is
/// treated as logits. The range check runs on the device. For binary and multiclass metrics, the
/// range check skips values whose target is ignored. NaN is treated as smaller than every
/// threshold. 16-bit values are converted to float32. An invalid target does not cause an error,
/// because detecting it would require a device read. After an invalid target, the result is NaN
/// until the next `reset`. An empty batch does not change the result.
///
/// `compute` returns a float64 tensor with values from 0 to 1. The tensor is 0-dim or, without
/// averaging, contains one value per class or label. A rate whose denominator is 0 is defined as 0.
/// The macro average includes all classes or labels. Memory use does not grow with the number of
/// batches, because the metric stores only two counts per threshold for each class or label.
/// @throw c10::Error from `update` if a type, a size, or the device is invalid.
class CurveScore : public Metric {
 public:
  /// Adds a batch.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the area from `sums`. For each class or label, `sums` contains counts for the
  /// negative targets, followed by counts for the positive targets. In each group, entry k is the
  /// number of `preds` that reach exactly the first k thresholds, starting with k = 0.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true, because higher values are better. The best possible area is 1.
  std::optional<bool> higher_is_better() const override { return true; }

 protected:
  /// The type of curve.
  enum class Curve { roc, precision_recall };

  /// Constructs a binary metric. Error messages begin with `name`.
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  CurveScore(const char* name, Curve curve, const BinaryAUROCOptions& options);
  /// Constructs a multiclass metric.
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  CurveScore(const char* name, Curve curve, const MulticlassCurveOptions& options);
  /// Constructs a multilabel metric.
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options);

 private:
  struct Batch;  // preds and target, with one row for each class or label
  CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options, bool classes);
  void check(const torch::Tensor& preds, const torch::Tensor& target) const;
  Batch batch_of_labels(const torch::Tensor& preds, const torch::Tensor& target) const;
  Batch batch_of_classes(const torch::Tensor& preds, const torch::Tensor& target) const;
  static int64_t rows(const MultilabelCurveOptions& options);  // the micro average treats all
                                                               // labels as one

  const char* name_;
  Curve curve_;
  bool classes_;                    // whether targets are classes; if false, they are labels
  MultilabelCurveOptions options_;  // num_labels is 1 for one label, and the number of classes for
                                    // classes
  double max_fpr_ = 1;
  torch::Tensor thresholds_;
};

/// Computes the area under the ROC curve (true positive rate as a function of false positive rate)
/// using the trapezoidal rule.
/// Python: `torchmetrics.classification.BinaryAUROC` with `thresholds`.
class BinaryAUROC : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit BinaryAUROC(const BinaryAUROCOptions& options)
      : CurveScore("sconce::metrics::BinaryAUROC", Curve::roc, options) {}
};

/// Computes the area under each class's one-vs-rest ROC curve.
/// Python: `torchmetrics.classification.MulticlassAUROC` with `thresholds`.
class MulticlassAUROC : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit MulticlassAUROC(const MulticlassCurveOptions& options)
      : CurveScore("sconce::metrics::MulticlassAUROC", Curve::roc, options) {}
};

/// Computes, for each label, the same area as `BinaryAUROC`.
/// Python: `torchmetrics.classification.MultilabelAUROC` with `thresholds`.
class MultilabelAUROC : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit MultilabelAUROC(const MultilabelCurveOptions& options)
      : CurveScore("sconce::metrics::MultilabelAUROC", Curve::roc, options) {}
};

/// Computes the area under the precision-recall curve as a step-function sum.
/// Python: `torchmetrics.classification.BinaryAveragePrecision` with `thresholds`.
class BinaryAveragePrecision : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit BinaryAveragePrecision(const BinaryAveragePrecisionOptions& options)
      : CurveScore("sconce::metrics::BinaryAveragePrecision", Curve::precision_recall,
                   BinaryAUROCOptions{.thresholds = options.thresholds,
                                      .ignore_index = options.ignore_index}) {}
};

/// Computes each class's one-vs-rest average precision.
/// Python: `torchmetrics.classification.MulticlassAveragePrecision` with `thresholds`.
class MulticlassAveragePrecision : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit MulticlassAveragePrecision(const MulticlassCurveOptions& options)
      : CurveScore("sconce::metrics::MulticlassAveragePrecision", Curve::precision_recall,
                   options) {}
};

/// Computes, for each label, the same area as `BinaryAveragePrecision`.
/// Python: `torchmetrics.classification.MultilabelAveragePrecision` with `thresholds`.
class MultilabelAveragePrecision : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit MultilabelAveragePrecision(const MultilabelCurveOptions& options)
      : CurveScore("sconce::metrics::MultilabelAveragePrecision", Curve::precision_recall,
                   options) {}
};

}  // namespace sconce::metrics
