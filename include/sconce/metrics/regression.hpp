#pragma once

#include <cstdint>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// What a MeanSquaredError takes; names and defaults are torchmetrics'.
struct MeanSquaredErrorOptions {
  bool squared = true;      ///< false: the root of the mean
  int64_t num_outputs = 1;  ///< above 1: an error for each column of (N, num_outputs)
};

/// What a MeanAbsoluteError takes; names and defaults are torchmetrics'.
struct MeanAbsoluteErrorOptions {
  int64_t num_outputs = 1;  ///< above 1: an error for each column of (N, num_outputs)
};

/// The mean of the squared differences of preds and target, tensors of the same sizes, over all of
/// their elements, or over each column: float64, 0-dim or (num_outputs,); nan before any example.
/// Differences are at least float32, so float16 loses nothing; a nan stays.
/// Python: `torchmetrics.MeanSquaredError`.
class MeanSquaredError : public Metric {
 public:
  /// @throw c10::Error if num_outputs is below 1.
  explicit MeanSquaredError(MeanSquaredErrorOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if the sizes differ, are not (N, num_outputs) of more than 1 output, or a
  /// tensor is complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the value of such sums: those of the outputs, and the number of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 private:
  MeanSquaredErrorOptions options_;
};

/// The mean of the absolute differences of preds and target, else as MeanSquaredError.
/// Python: `torchmetrics.MeanAbsoluteError`.
class MeanAbsoluteError : public Metric {
 public:
  /// @throw c10::Error if num_outputs is below 1.
  explicit MeanAbsoluteError(MeanAbsoluteErrorOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if the sizes differ, are not (N, num_outputs) of more than 1 output, or a
  /// tensor is complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the value of such sums: those of the outputs, and the number of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 private:
  MeanAbsoluteErrorOptions options_;
};

}  // namespace sconce::metrics
