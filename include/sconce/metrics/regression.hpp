#pragma once

#include <cstdint>
#include <optional>

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

/// How the scores of several outputs are combined.
enum class Multioutput {
  raw_values,        ///< a score for each output
  uniform_average,   ///< mean over the outputs
  variance_weighted  ///< mean over the outputs, weighted by the variances of their targets
};

/// Options of `R2Score`, with torchmetrics' names and defaults.
struct R2ScoreOptions {
  /// Number of columns of `(N, num_outputs)`. Python takes it from the first batch.
  int64_t num_outputs = 1;
  int64_t adjusted = 0;  ///< number of regressors that the score is adjusted for, 0 or more
  Multioutput multioutput = Multioutput::uniform_average;  ///< how outputs are combined
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
  /// Returns false: an error of 0 is the best.
  std::optional<bool> higher_is_better() const override { return false; }

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
  /// Returns false: an error of 0 is the best.
  std::optional<bool> higher_is_better() const override { return false; }

 private:
  MeanAbsoluteErrorOptions options_;
};

/// The mean of |preds - target| / |target| over all elements of tensors of the same sizes: float64,
/// 0-dim, 1 for an error of 100%; nan before the first example. A target nearer to 0 than 1.17e-6
/// counts as 1.17e-6. Otherwise it is like `MeanSquaredError`.
/// Python: `torchmetrics.MeanAbsolutePercentageError`.
class MeanAbsolutePercentageError : public Metric {
 public:
  MeanAbsolutePercentageError() : Metric(2) {}
  /// Adds a batch.
  /// @throw c10::Error if the sizes differ, or a tensor is complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the value for sums of this layout: the sum of the errors, and their number.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns false: an error of 0 is the best.
  std::optional<bool> higher_is_better() const override { return false; }
};

/// The share of the variance of target that preds explain, the coefficient of determination:
/// float64, at most 1, 0-dim, or `(num_outputs,)` for `raw_values` of several outputs. It is nan
/// below two examples. preds and target are `(N,)` or `(N, num_outputs)`, and are computed in
/// float64. Sums of squares up to 1e-4 count as 0, as in Python: the score is 1 if that of the
/// residuals is 0, and otherwise 0 if the total one is 0. With too few examples for `adjusted` it
/// is the plain score. Python: `torchmetrics.R2Score`.
class R2Score : public Metric {
 public:
  /// @throw c10::Error if num_outputs is below 1, or adjusted is below 0.
  explicit R2Score(R2ScoreOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if the sizes differ, are not `(N, num_outputs)`, or a tensor is complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the value for sums of this layout: for each output the squared targets, then the
  /// targets, then the squared residuals, and at last the number of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true: 1 is the best score.
  std::optional<bool> higher_is_better() const override { return true; }

 private:
  R2ScoreOptions options_;
};

}  // namespace sconce::metrics
