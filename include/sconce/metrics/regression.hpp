#pragma once

#include <cstdint>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// Options of `MeanSquaredError`, with torchmetrics' names and defaults.
struct MeanSquaredErrorOptions {
  bool squared = true;      ///< false returns the root of the mean
  int64_t num_outputs = 1;  ///< above 1 there is an error for each column of `(N, num_outputs)`
};

/// Options of `MeanAbsoluteError`, with torchmetrics' names and defaults.
struct MeanAbsoluteErrorOptions {
  int64_t num_outputs = 1;  ///< above 1 there is an error for each column of `(N, num_outputs)`
};

/// The mean of the squared differences of preds and target, tensors of the same sizes, over all
/// elements or over each column: float64, 0-dim or `(num_outputs,)`; nan before the first example.
/// Differences are computed in float32 or a wider type. If an element is nan, the error is nan.
/// Python: `torchmetrics.MeanSquaredError`.
class MeanSquaredError : public Metric {
 public:
  /// @throw c10::Error if num_outputs is below 1.
  explicit MeanSquaredError(MeanSquaredErrorOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if the sizes differ, are not `(N, num_outputs)` with more than one output,
  /// or a tensor is complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the value for sums of this layout: one for each output, and the number of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 private:
  MeanSquaredErrorOptions options_;
};

/// The mean of the absolute differences of preds and target, otherwise like `MeanSquaredError`.
/// Python: `torchmetrics.MeanAbsoluteError`.
class MeanAbsoluteError : public Metric {
 public:
  /// @throw c10::Error if num_outputs is below 1.
  explicit MeanAbsoluteError(MeanAbsoluteErrorOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if the sizes differ, are not `(N, num_outputs)` with more than one output,
  /// or a tensor is complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the value for sums of this layout: one for each output, and the number of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 private:
  MeanAbsoluteErrorOptions options_;
};

}  // namespace sconce::metrics
