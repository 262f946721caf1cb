#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// Where a curve is measured: a number of thresholds, 2 or more, at equal distances from 0 to 1, or
/// a list of them from 0 to 1 in ascending order, such as `std::vector{0.25, 0.5}`. Python also has
/// None, which keeps all batches.
using Thresholds = std::variant<int64_t, std::vector<double>>;

/// Options of `BinaryAUROC`, with torchmetrics' names.
struct BinaryAUROCOptions {
  /// The area is that up to this false positive rate, above 0 and at most 1, scaled so that 0.5 is
  /// chance and 1 the best (McClish).
  std::optional<double> max_fpr = {};
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Options of `BinaryAveragePrecision`, with torchmetrics' names.
struct BinaryAveragePrecisionOptions {
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Options of `MulticlassAUROC` and `MulticlassAveragePrecision`, with torchmetrics' names.
struct MulticlassCurveOptions {
  int64_t num_classes = 0;                   ///< number of classes, 2 or more
  Average average = Average::macro;          ///< how the areas are combined; not micro
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Options of `MultilabelAUROC` and `MultilabelAveragePrecision`, with torchmetrics' names.
struct MultilabelCurveOptions {
  int64_t num_labels = 0;                    ///< number of labels, 2 or more
  Average average = Average::macro;          ///< how the areas are combined
  Thresholds thresholds = 0;                 ///< required
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Base class of the areas under curves by thresholds. `update` takes preds of floating point and a
/// target: `(N, ...)` both for one label, `(N, num_labels, ...)` both for several, with targets 0,
/// 1 and ignore_index; `(N, num_classes, ...)` and integers `(N, ...)` for classes. preds are
/// probabilities, or logits if a number of the batch is not in [0, 1], which the device finds;
/// for one label and for classes the numbers with an ignored target are left out there. nan is
/// below all thresholds. 16-bit numbers are computed in float32. Another target gives no error,
/// because finding it would read the device: it makes the value nan until the next `reset`. An
/// empty batch adds nothing. `compute` returns a float64 from 0 to 1, 0-dim, or one for each class
/// or label without an average. A rate that would be divided by 0 is 0. The macro average is over
/// all classes or labels. The memory is that of two numbers for each threshold and class or label,
/// for any number of batches.
/// @throw c10::Error from `update` if a type, a size or the device is wrong.
class CurveScore : public Metric {
 public:
  /// Adds a batch.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the area for sums of this layout: for each class or label, for the targets 0 and then
  /// for the targets 1, how many preds reach no threshold, the first alone, the first two, and so
  /// on.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true: 1 is the best area.
  std::optional<bool> higher_is_better() const override { return true; }

 protected:
  /// The curves.
  enum class Curve { roc, precision_recall };

  /// Makes the metric `name`, which errors begin with, of one label.
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  CurveScore(const char* name, Curve curve, const BinaryAUROCOptions& options);
  /// Makes the metric of several classes.
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  CurveScore(const char* name, Curve curve, const MulticlassCurveOptions& options);
  /// Makes the metric of several labels.
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options);

 private:
  struct Batch;  // preds and target, a row for each class or label
  CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options, bool classes);
  void check(const torch::Tensor& preds, const torch::Tensor& target) const;
  Batch batch_of_labels(const torch::Tensor& preds, const torch::Tensor& target) const;
  Batch batch_of_classes(const torch::Tensor& preds, const torch::Tensor& target) const;
  static int64_t rows(const MultilabelCurveOptions& options);  // micro counts all labels as one

  const char* name_;
  Curve curve_;
  bool classes_;                    // of which each target is one; otherwise labels
  MultilabelCurveOptions options_;  // num_labels is 1 for one label, or the number of classes
  double max_fpr_ = 1;
  torch::Tensor thresholds_;
};

/// The area under the curve of true over false positive rates, by trapezoids.
/// Python: `torchmetrics.classification.BinaryAUROC` with thresholds.
class BinaryAUROC : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  explicit BinaryAUROC(const BinaryAUROCOptions& options)
      : CurveScore("sconce::metrics::BinaryAUROC", Curve::roc, options) {}
};

/// For each class, the area for this class against all others.
/// Python: `torchmetrics.classification.MulticlassAUROC` with thresholds.
class MulticlassAUROC : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  explicit MulticlassAUROC(const MulticlassCurveOptions& options)
      : CurveScore("sconce::metrics::MulticlassAUROC", Curve::roc, options) {}
};

/// For each label, the area of `BinaryAUROC`.
/// Python: `torchmetrics.classification.MultilabelAUROC` with thresholds.
class MultilabelAUROC : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  explicit MultilabelAUROC(const MultilabelCurveOptions& options)
      : CurveScore("sconce::metrics::MultilabelAUROC", Curve::roc, options) {}
};

/// The area under the curve of precision over recall, by steps.
/// Python: `torchmetrics.classification.BinaryAveragePrecision` with thresholds.
class BinaryAveragePrecision : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  explicit BinaryAveragePrecision(const BinaryAveragePrecisionOptions& options)
      : CurveScore("sconce::metrics::BinaryAveragePrecision", Curve::precision_recall,
                   BinaryAUROCOptions{.thresholds = options.thresholds,
                                      .ignore_index = options.ignore_index}) {}
};

/// For each class, the area for this class against all others.
/// Python: `torchmetrics.classification.MulticlassAveragePrecision` with thresholds.
class MulticlassAveragePrecision : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  explicit MulticlassAveragePrecision(const MulticlassCurveOptions& options)
      : CurveScore("sconce::metrics::MulticlassAveragePrecision", Curve::precision_recall,
                   options) {}
};

/// For each label, the area of `BinaryAveragePrecision`.
/// Python: `torchmetrics.classification.MultilabelAveragePrecision` with thresholds.
class MultilabelAveragePrecision : public CurveScore {
 public:
  /// @throw c10::Error if there are no thresholds, or an option is out of its range.
  explicit MultilabelAveragePrecision(const MultilabelCurveOptions& options)
      : CurveScore("sconce::metrics::MultilabelAveragePrecision", Curve::precision_recall,
                   options) {}
};

}  // namespace sconce::metrics
