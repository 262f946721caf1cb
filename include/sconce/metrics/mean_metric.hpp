#pragma once

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// The mean of values, such as losses, each with a weight, such as its number of examples: float64,
/// 0-dim; nan before any value. A nan stays, so that a loss that is lost is seen.
/// Python: `torchmetrics.MeanMetric`, which reads on the host whether there is a nan, and leaves it
/// out.
class MeanMetric : public Metric {
 public:
  MeanMetric() : Metric(2) {}

  /// Adds every element of value, with its weight; weight is broadcast to value's sizes.
  /// @throw c10::Error if it cannot be, or a tensor is complex.
  void update(const torch::Tensor& value, const torch::Tensor& weight) override;

  /// Adds every element of value with one weight: `mean.update(loss, rows)`.
  /// @throw c10::Error if value is complex.
  void update(const torch::Tensor& value, double weight = 1);

  /// Returns the value of such sums: of the weighted values, and of the weights.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
};

}  // namespace sconce::metrics
