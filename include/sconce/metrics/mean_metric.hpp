#pragma once

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// Computes the weighted mean of values, such as losses weighted by the number of examples. The
/// result is a 0-dim float64 tensor. The result is NaN if no value has been added or if any value
/// is NaN.
/// Python: `torchmetrics.MeanMetric`, which ignores NaN values. Detecting NaN values would require
/// a device read.
class MeanMetric : public Metric {
 public:
  MeanMetric() : Metric(2) {}

  /// Adds each element of `value` with the corresponding weight. `weight` is broadcast to the shape
  /// of `value`.
  /// @throw c10::Error if `weight` cannot be broadcast, or if a tensor is complex.
  void update(const torch::Tensor& value, const torch::Tensor& weight) override;

  /// Adds each element of `value` with the same weight, as in `mean.update(loss, rows)`.
  /// @throw c10::Error if `value` is complex.
  void update(const torch::Tensor& value, double weight = 1);

  /// Computes the mean from `sums`, which contains the weighted sum of the values and the sum of
  /// the weights.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
};

}  // namespace sconce::metrics
