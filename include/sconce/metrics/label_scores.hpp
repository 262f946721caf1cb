#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// Options of the metrics of one label, with the names and defaults of
/// `torchmetrics.classification.BinaryAccuracy`.
struct BinaryOptions {
  double threshold = 0.5;  ///< a probability above it is the answer 1; from 0 to 1
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Options of the metrics of several labels, with the names and defaults of
/// `torchmetrics.classification.MultilabelAccuracy`.
struct MultilabelOptions {
  int64_t num_labels = 0;            ///< number of labels, 2 or more
  double threshold = 0.5;            ///< a probability above it is the answer 1; from 0 to 1
  Average average = Average::macro;  ///< how the scores of the labels are combined
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Base class of the scores of labels that are 0 or 1. `update` takes preds and target of the same
/// sizes, `(N, ...)` for one label and `(N, num_labels, ...)` for several. The targets are 0, 1 and
/// ignore_index, of any type of real numbers. preds are answers, integers 0 and 1, or floating
/// point: probabilities, or logits if a number of the batch is not in [0, 1], which the device
/// finds. 16-bit numbers are computed in float32. The answer of nan is 0. Another target or answer
/// gives no error, because finding it would read the device: it makes the value nan until the next
/// `reset`. An empty batch adds nothing. `compute` returns a float64 from 0 to 1, 0-dim, or
/// `(num_labels,)` without an average. It is 0 where it would divide by 0. The macro average is
/// over all labels.
/// @throw c10::Error from `update` if a type, a size or the device is wrong.
class LabelScore : public Metric {
 public:
  /// Adds a batch.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the score for sums of this layout: for each label the answers 1 that are right, those
  /// that are wrong, the targets 1, and the targets 0.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true: 1 is the best score.
  std::optional<bool> higher_is_better() const override { return true; }

 protected:
  /// The scores.
  enum class Score { accuracy, precision, recall, f1 };

  /// Makes the metric `name`, which errors begin with, of one label.
  /// @throw c10::Error if threshold is not in [0, 1].
  LabelScore(const char* name, Score score, BinaryOptions options);
  /// Makes the metric of several labels.
  /// @throw c10::Error if threshold is not in [0, 1], or num_labels is below 2.
  LabelScore(const char* name, Score score, MultilabelOptions options);

 private:
  const char* name_;
  Score score_;
  MultilabelOptions options_;  // num_labels is 1 for one label
};

/// The share of right answers. Python: `torchmetrics.classification.BinaryAccuracy`.
class BinaryAccuracy : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1].
  explicit BinaryAccuracy(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryAccuracy", Score::accuracy, options) {}
};

/// The share of the answers 1 that are right.
/// Python: `torchmetrics.classification.BinaryPrecision`.
class BinaryPrecision : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1].
  explicit BinaryPrecision(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryPrecision", Score::precision, options) {}
};

/// The share of the targets 1 that were found. Python: `torchmetrics.classification.BinaryRecall`.
class BinaryRecall : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1].
  explicit BinaryRecall(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryRecall", Score::recall, options) {}
};

/// The harmonic mean of precision and recall. Python: `torchmetrics.classification.BinaryF1Score`.
class BinaryF1Score : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1].
  explicit BinaryF1Score(BinaryOptions options = {})
      : LabelScore("sconce::metrics::BinaryF1Score", Score::f1, options) {}
};

/// For each label, the share of right answers.
/// Python: `torchmetrics.classification.MultilabelAccuracy`.
class MultilabelAccuracy : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1], or num_labels is below 2.
  explicit MultilabelAccuracy(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelAccuracy", Score::accuracy, options) {}
};

/// For each label, the share of the answers 1 that are right.
/// Python: `torchmetrics.classification.MultilabelPrecision`.
class MultilabelPrecision : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1], or num_labels is below 2.
  explicit MultilabelPrecision(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelPrecision", Score::precision, options) {}
};

/// For each label, the share of the targets 1 that were found.
/// Python: `torchmetrics.classification.MultilabelRecall`.
class MultilabelRecall : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1], or num_labels is below 2.
  explicit MultilabelRecall(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelRecall", Score::recall, options) {}
};

/// For each label, the harmonic mean of precision and recall.
/// Python: `torchmetrics.classification.MultilabelF1Score`.
class MultilabelF1Score : public LabelScore {
 public:
  /// @throw c10::Error if threshold is not in [0, 1], or num_labels is below 2.
  explicit MultilabelF1Score(MultilabelOptions options)
      : LabelScore("sconce::metrics::MultilabelF1Score", Score::f1, options) {}
};

}  // namespace sconce::metrics
