#pragma once

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// The weighted mean of values, such as losses weighted by their numbers of examples: float64,
/// 0-dim; nan before the first value. If a value is nan, the mean is nan.
/// Python: `torchmetrics.MeanMetric`. Python's ignores nan: to find it, the host reads the values.
class MeanMetric : public Metric {
 public:
  MeanMetric() : Metric(2) {}

  /// Adds each element of value with its weight. weight is broadcast to value's sizes.
  /// @throw c10::Error if weight cannot be broadcast, or a tensor is complex.
  void update(const torch::Tensor& value, const torch::Tensor& weight) override;

  /// Adds each element of value with the same weight, as in `mean.update(loss, rows)`.
  /// @throw c10::Error if value is complex.
  void update(const torch::Tensor& value, double weight = 1);

  /// Returns the mean for sums of this layout: of the weighted values, and of the weights.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
};

}  // namespace sconce::metrics
