#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// Options for the binary metrics, with the same names and defaults as
/// `torchmetrics.classification.BinaryAccuracy`.
struct BinaryOptions {
  double threshold = 0.5;  ///< predict 1 for probabilities above this; from 0 to 1
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Options for the multilabel metrics, with the same names and defaults as
/// `torchmetrics.classification.MultilabelAccuracy`.
struct MultilabelOptions {
  int64_t num_labels = 0;            ///< number of labels, 2 or more
  double threshold = 0.5;            ///< predict 1 for probabilities above this; from 0 to 1
  Average average = Average::macro;  ///< how to combine the label scores
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Base class for binary-label metrics. `update` accepts `preds` and `target` of the same shape:
/// (N, ...) for one label or `(N, num_labels, ...)` for several labels. `target` may have any real
/// type but must contain only 0, 1, and `ignore_index`. `preds` contains integer predictions (0 or
/// 1) or floating-point probabilities. If any floating-point element is outside [0, 1], the whole
/// batch is treated as logits. This check runs on the device. 16-bit values are converted to
/// float32. NaN counts as a prediction of 0.
///
/// `compute` returns a float64 tensor with values between 0 and 1. Without averaging, the tensor
/// has shape `(num_labels,)`. Otherwise, it is 0-dim. A score whose denominator is 0 is defined as
/// 0. The macro average includes all labels. An invalid target or prediction does not cause an
/// error, because detecting it would require a device read. Instead, the result is NaN until the
/// next `reset`. An empty batch does not change the result.
/// @throw c10::Error from `update` if a type, a size, or the device is invalid.
class LabelScore : public Metric {
 public:
  /// Adds a batch.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the score from `sums`, which contains each label's number of true positives, followed
  /// by the per-label counts of false positives, positive targets, and negative targets.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true, because higher values are better. The best score is 1.
  std::optional<bool> higher_is_better() const override { return true; }

 protected:
  /// The type of score.
  enum class Score { accuracy, precision, recall, f1 };

  /// Constructs a binary metric. Error messages begin with `name`.
  /// @throw c10::Error if `threshold` is not in [0, 1].
  LabelScore(const char* name, Score score, BinaryOptions options);
  /// Constructs a multilabel metric.
  /// @throw c10::Error if `threshold` is not in [0, 1], or if `num_labels` is below 2.
  LabelScore(const char* name, Score score, MultilabelOptions options);

 private:
  const char* name_;
  Score score_;
  MultilabelOptions options_;  // num_labels is 1 for one label
};

/// Computes the fraction of correct predictions.
/// Python: `torchmetrics.classification.BinaryAccuracy`.
class BinaryAccuracy : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1].
  explicit BinaryAccuracy(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryAccuracy", Score::accuracy, options) {}
};

/// Computes the fraction of positive predictions that are correct.
/// Python: `torchmetrics.classification.BinaryPrecision`.
class BinaryPrecision : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1].
  explicit BinaryPrecision(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryPrecision", Score::precision, options) {}
};

/// Computes the fraction of positive targets that were predicted correctly.
/// Python: `torchmetrics.classification.BinaryRecall`.
class BinaryRecall : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1].
  explicit BinaryRecall(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryRecall", Score::recall, options) {}
};

/// Computes the harmonic mean of precision and recall.
/// Python: `torchmetrics.classification.BinaryF1Score`.
class BinaryF1Score : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1].
  explicit BinaryF1Score(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryF1Score", Score::f1, options) {}
};

/// Computes the fraction of correct predictions for each label.
/// Python: `torchmetrics.classification.MultilabelAccuracy`.
class MultilabelAccuracy : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1], or if `num_labels` is below 2.
  explicit MultilabelAccuracy(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelAccuracy", Score::accuracy, options) {}
};

/// Computes the fraction of each label's positive predictions that are correct.
/// Python: `torchmetrics.classification.MultilabelPrecision`.
class MultilabelPrecision : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1], or if `num_labels` is below 2.
  explicit MultilabelPrecision(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelPrecision", Score::precision, options) {}
};

/// Computes the fraction of each label's positive targets that were predicted correctly.
/// Python: `torchmetrics.classification.MultilabelRecall`.
class MultilabelRecall : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1], or if `num_labels` is below 2.
  explicit MultilabelRecall(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelRecall", Score::recall, options) {}
};

/// Computes the harmonic mean of each label's precision and recall.
/// Python: `torchmetrics.classification.MultilabelF1Score`.
class MultilabelF1Score : public LabelScore {
 public:
  /// @throw c10::Error if `threshold` is not in [0, 1], or if `num_labels` is below 2.
  explicit MultilabelF1Score(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelF1Score", Score::f1, options) {}
};

}  // namespace sconce::metrics
