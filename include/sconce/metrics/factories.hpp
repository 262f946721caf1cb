#pragma once

#include <memory>

#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/metrics/curve_scores.hpp"
#include "sconce/metrics/label_scores.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/metrics/perplexity.hpp"
#include "sconce/metrics/regression.hpp"

/// Metrics with the same names as in torchmetrics. For each metric, a factory function returns a
/// shared pointer, as expected by `TrainerOptions::metrics`:
///
///     sconce::Metrics{{"acc", metrics::accuracy()},
///                     {"cells", metrics::confusion_matrix({.num_classes = 3})}}
///
/// Unlike `std::make_shared`, the metric factories accept options in braces. Each function throws
/// under the same conditions as the metric's constructor.
namespace sconce::metrics {

/// Returns a new `Accuracy`.
inline std::shared_ptr<Accuracy> accuracy(ClassificationOptions options = {}) {
  return std::make_shared<Accuracy>(options);
}
/// Returns a new `Precision`.
inline std::shared_ptr<Precision> precision(ClassificationOptions options = {}) {
  return std::make_shared<Precision>(options);
}
/// Returns a new `Recall`.
inline std::shared_ptr<Recall> recall(ClassificationOptions options = {}) {
  return std::make_shared<Recall>(options);
}
/// Returns a new `F1Score`.
inline std::shared_ptr<F1Score> f1_score(ClassificationOptions options = {}) {
  return std::make_shared<F1Score>(options);
}
/// Returns a new `ConfusionMatrix`.
inline std::shared_ptr<ConfusionMatrix> confusion_matrix(ConfusionMatrixOptions options) {
  return std::make_shared<ConfusionMatrix>(options);
}
/// Returns a new `BinaryAUROC`.
inline std::shared_ptr<BinaryAUROC> binary_auroc(const BinaryAUROCOptions& options) {
  return std::make_shared<BinaryAUROC>(options);
}
/// Returns a new `MulticlassAUROC`.
inline std::shared_ptr<MulticlassAUROC> multiclass_auroc(const MulticlassCurveOptions& options) {
  return std::make_shared<MulticlassAUROC>(options);
}
/// Returns a new `MultilabelAUROC`.
inline std::shared_ptr<MultilabelAUROC> multilabel_auroc(const MultilabelCurveOptions& options) {
  return std::make_shared<MultilabelAUROC>(options);
}
/// Returns a new `BinaryAveragePrecision`.
inline std::shared_ptr<BinaryAveragePrecision> binary_average_precision(
    const BinaryAveragePrecisionOptions& options) {
  return std::make_shared<BinaryAveragePrecision>(options);
}
/// Returns a new `MulticlassAveragePrecision`.
inline std::shared_ptr<MulticlassAveragePrecision> multiclass_average_precision(
    const MulticlassCurveOptions& options) {
  return std::make_shared<MulticlassAveragePrecision>(options);
}
/// Returns a new `MultilabelAveragePrecision`.
inline std::shared_ptr<MultilabelAveragePrecision> multilabel_average_precision(
    const MultilabelCurveOptions& options) {
  return std::make_shared<MultilabelAveragePrecision>(options);
}
/// Returns a new `BinaryAccuracy`.
inline std::shared_ptr<BinaryAccuracy> binary_accuracy(BinaryOptions options = {}) {
  return std::make_shared<BinaryAccuracy>(options);
}
/// Returns a new `BinaryPrecision`.
inline std::shared_ptr<BinaryPrecision> binary_precision(BinaryOptions options = {}) {
  return std::make_shared<BinaryPrecision>(options);
}
/// Returns a new `BinaryRecall`.
inline std::shared_ptr<BinaryRecall> binary_recall(BinaryOptions options = {}) {
  return std::make_shared<BinaryRecall>(options);
}
/// Returns a new `BinaryF1Score`.
inline std::shared_ptr<BinaryF1Score> binary_f1_score(BinaryOptions options = {}) {
  return std::make_shared<BinaryF1Score>(options);
}
/// Returns a new `MultilabelAccuracy`.
inline std::shared_ptr<MultilabelAccuracy> multilabel_accuracy(MultilabelOptions options) {
  return std::make_shared<MultilabelAccuracy>(options);
}
/// Returns a new `MultilabelPrecision`.
inline std::shared_ptr<MultilabelPrecision> multilabel_precision(MultilabelOptions options) {
  return std::make_shared<MultilabelPrecision>(options);
}
/// Returns a new `MultilabelRecall`.
inline std::shared_ptr<MultilabelRecall> multilabel_recall(MultilabelOptions options) {
  return std::make_shared<MultilabelRecall>(options);
}
/// Returns a new `MultilabelF1Score`.
inline std::shared_ptr<MultilabelF1Score> multilabel_f1_score(MultilabelOptions options) {
  return std::make_shared<MultilabelF1Score>(options);
}
/// Returns a new `MeanMetric`.
inline std::shared_ptr<MeanMetric> mean_metric() {
  return std::make_shared<MeanMetric>();
}
/// Returns a new `MeanSquaredError`.
inline std::shared_ptr<MeanSquaredError> mean_squared_error(MeanSquaredErrorOptions options = {}) {
  return std::make_shared<MeanSquaredError>(options);
}
/// Returns a new `MeanAbsoluteError`.
inline std::shared_ptr<MeanAbsoluteError> mean_absolute_error(
    MeanAbsoluteErrorOptions options = {}) {
  return std::make_shared<MeanAbsoluteError>(options);
}
/// Returns a new `MeanAbsolutePercentageError`.
inline std::shared_ptr<MeanAbsolutePercentageError> mean_absolute_percentage_error() {
  return std::make_shared<MeanAbsolutePercentageError>();
}
/// Returns a new `R2Score`.
inline std::shared_ptr<R2Score> r2_score(R2ScoreOptions options = {}) {
  return std::make_shared<R2Score>(options);
}
/// Returns a new `Perplexity`.
inline std::shared_ptr<Perplexity> perplexity(PerplexityOptions options = {}) {
  return std::make_shared<Perplexity>(options);
}

}  // namespace sconce::metrics
