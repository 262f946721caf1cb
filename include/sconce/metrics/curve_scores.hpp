#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// The thresholds at which a curve is measured: either a number of evenly spaced thresholds from 0
/// to 1, 2 or more, or a list of thresholds from 0 to 1 in ascending order, such as
/// `std::vector{0.25, 0.5}`. Python also accepts None, which keeps all batches.
using Thresholds = std::variant<int64_t, std::vector<double>>;

/// Options for `BinaryAUROC`, with torchmetrics' names.
struct BinaryAUROCOptions {
  /// Compute the area only up to this false positive rate, above 0 and at most 1. The area is
  /// scaled so that 0.5 is chance and 1 is the best (McClish).
  std::optional<double> max_fpr = {};
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Options for `BinaryAveragePrecision`, with torchmetrics' names.
struct BinaryAveragePrecisionOptions {
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Options for `MulticlassAUROC` and `MulticlassAveragePrecision`, with torchmetrics' names.
struct MulticlassCurveOptions {
  int64_t num_classes = 0;                   ///< number of classes, 2 or more
  Average average = Average::macro;          ///< how to combine the areas; not micro
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Options for `MultilabelAUROC` and `MultilabelAveragePrecision`, with torchmetrics' names.
struct MultilabelCurveOptions {
  int64_t num_labels = 0;                    ///< number of labels, 2 or more
  Average average = Average::macro;          ///< how to combine the areas
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Base class of the areas under curves that are measured at thresholds. `update` accepts
/// floating-point `preds` and a `target` with these shapes:
/// - one label: both (N, ...), with targets 0, 1, and `ignore_index`;
/// - several labels: both `(N, num_labels, ...)`, with targets 0, 1, and `ignore_index`;
/// - classes: `preds` of shape `(N, num_classes, ...)` and integer `target` of shape (N, ...).
///
/// `preds` contains probabilities. If a value in the batch is outside [0, 1], the batch is treated
/// as logits; this check runs on the device. For one label and for classes, the check skips values
/// whose target is ignored. NaN is below every threshold. 16-bit values are computed in float32.
/// Any other target causes no error, because detecting it would require a device read. Instead, the
/// value is NaN until the next `reset`. An empty batch adds nothing.
///
/// `compute` returns a float64 tensor with values from 0 to 1. It is 0-dim, or contains one value
/// per class or label without an average. A rate that would be divided by 0 is 0. The macro average
/// is over all classes or labels. Memory use does not grow with the number of batches: the metric
/// stores two numbers per threshold and class or label.
/// @throw c10::Error from `update` if a type, a size, or the device is wrong.
class CurveScore : public Metric {
 public:
  /// Adds a batch.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the area for `sums`. They contain, for each class or label, first for the negative and
  /// then for the positive targets, how many `preds` reach no threshold, only the first threshold,
  /// the first two, and so on.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true: higher is better, and 1 is the best area.
  std::optional<bool> higher_is_better() const override { return true; }

 protected:
  /// Which curve to measure.
  enum class Curve { roc, precision_recall };

  /// Constructs the metric for one label. Error messages begin with `name`.
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  CurveScore(const char* name, Curve curve, const BinaryAUROCOptions& options);
  /// Constructs the metric for several classes.
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  CurveScore(const char* name, Curve curve, const MulticlassCurveOptions& options);
  /// Constructs the metric for several labels.
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options);

 private:
  struct Batch;  // preds and target, with a row for each class or label
  CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options, bool classes);
  void check(const torch::Tensor& preds, const torch::Tensor& target) const;
  Batch batch_of_labels(const torch::Tensor& preds, const torch::Tensor& target) const;
  Batch batch_of_classes(const torch::Tensor& preds, const torch::Tensor& target) const;
  static int64_t rows(const MultilabelCurveOptions& options);  // micro counts all labels as one

  const char* name_;
  Curve curve_;
  bool classes_;  // whether each target is one of several classes; otherwise labels
  MultilabelCurveOptions options_;  // num_labels is 1 for one label, or the number of classes
  double max_fpr_ = 1;
  torch::Tensor thresholds_;
};

/// Computes the area under the ROC curve (true positive rate over false positive rate) with the
/// trapezoidal rule.
/// Python: `torchmetrics.classification.BinaryAUROC` with `thresholds`.
class BinaryAUROC : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit BinaryAUROC(const BinaryAUROCOptions& options)
      : CurveScore("sconce::metrics::BinaryAUROC", Curve::roc, options) {}
};

/// Computes, for each class, the area under the ROC curve of this class against all others.
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

/// Computes the area under the precision-recall curve as a sum of steps.
/// Python: `torchmetrics.classification.BinaryAveragePrecision` with `thresholds`.
class BinaryAveragePrecision : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or if an option is out of range.
  explicit BinaryAveragePrecision(const BinaryAveragePrecisionOptions& options)
      : CurveScore("sconce::metrics::BinaryAveragePrecision", Curve::precision_recall,
                   BinaryAUROCOptions{.thresholds = options.thresholds,
                                      .ignore_index = options.ignore_index}) {}
};

/// Computes, for each class, the average precision of this class against all others.
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
