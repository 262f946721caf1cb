#pragma once

#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <string>
#include <vector>

#include "sconce/metrics/curve_scores.hpp"
#include "sconce/metrics/label_scores.hpp"
#include "sconce/metrics/perplexity.hpp"
#include "sconce/metrics/regression.hpp"

namespace sconce::test {

/// A metric and inputs that it accepts.
struct MetricAndBatch {
  std::string name;
  std::shared_ptr<metrics::Metric> metric;
  std::shared_ptr<metrics::Metric> same;  ///< another metric with the same options
  torch::Tensor preds;                    ///< floating point
  torch::Tensor target;
};

/// Returns one metric for each kind of label, and metrics for curves, percentages, R2, and
/// perplexity, together with random batches of this many rows.
inline std::vector<MetricAndBatch> every_further_metric(int64_t rows) {
  std::vector<MetricAndBatch> all;
  const auto add = [&]<class M>(const char* name, const M& metric, const torch::Tensor& preds,
                                const torch::Tensor& target) {
    all.push_back({name, std::make_shared<M>(metric), std::make_shared<M>(metric), preds, target});
  };
  const auto logits = at::randn({rows, 3, 2}), numbers = at::rand({rows});
  const auto labels = at::randint(2, {rows, 3, 2}, at::kLong);
  const auto classes = at::randint(-1, 3, {rows, 2}, at::kLong);
  using metrics::Average;
  add("accuracy", metrics::BinaryAccuracy({.threshold = 0.25}), logits, labels);
  add("precision", metrics::MultilabelPrecision({.num_labels = 3}), logits, labels);
  add("recall", metrics::MultilabelRecall({.num_labels = 3, .average = Average::none}), logits,
      labels);
  add("f1", metrics::BinaryF1Score({.ignore_index = 0}), logits, labels);
  add("partial auroc", metrics::BinaryAUROC({.max_fpr = 0.5, .thresholds = 9}), logits, labels);
  add("auroc", metrics::MulticlassAUROC({.num_classes = 3, .thresholds = 9, .ignore_index = -1}),
      logits, classes);
  add("average precision",
      metrics::MultilabelAveragePrecision(
          {.num_labels = 3, .average = Average::weighted, .thresholds = std::vector{0.25, 0.75}}),
      logits, labels);
  add("percentage error", metrics::MeanAbsolutePercentageError(), numbers, numbers + 1);
  add("r2", metrics::R2Score({.adjusted = 1}), numbers, numbers.square());
  add("perplexity", metrics::Perplexity({.ignore_index = -1}), logits.transpose(1, 2), classes);
  return all;
}

}  // namespace sconce::test
