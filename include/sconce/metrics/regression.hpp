#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// Options for `MeanSquaredError`, with the same names and defaults as in torchmetrics.
struct MeanSquaredErrorOptions {
  bool squared = true;      ///< `false` returns the square root of the mean
  int64_t num_outputs = 1;  ///< if above 1, computes an error for each column of `(N, num_outputs)`
};

/// Options for `MeanAbsoluteError`, with the same names and defaults as in torchmetrics.
struct MeanAbsoluteErrorOptions {
  int64_t num_outputs = 1;  ///< if above 1, computes an error for each column of `(N, num_outputs)`
};

/// How to combine per-output scores.
enum class Multioutput {
  raw_values,        ///< one score per output
  uniform_average,   ///< mean over the outputs
  variance_weighted  ///< mean over the outputs, weighted by the variance of each output's targets
};

/// Options for `R2Score`, with the same names and defaults as in torchmetrics.
struct R2ScoreOptions {
  /// Number of outputs, equal to the number of columns in the `(N, num_outputs)` tensors. Python
  /// infers the number of outputs from the first batch.
  int64_t num_outputs = 1;
  int64_t adjusted = 0;  ///< number of regressors for the adjusted score, 0 or more
  Multioutput multioutput = Multioutput::uniform_average;  ///< how to combine the outputs
};

/// Computes the mean squared error between `preds` and `target` over all elements or separately for
/// each column. `preds` and `target` must have the same shape. The result is a float64 tensor,
/// either 0-dim or of shape `(num_outputs,)`. The error is NaN if there are no examples or if any
/// element is NaN. Differences are computed with at least float32 precision.
/// Python: `torchmetrics.MeanSquaredError`.
class MeanSquaredError : public Metric {
 public:
  /// @throw c10::Error if `num_outputs` is below 1.
  explicit MeanSquaredError(MeanSquaredErrorOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if:
  /// - the shapes differ, or a tensor is complex;
  /// - `num_outputs` is above 1, and the shapes are not `(N, num_outputs)`.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the error from `sums`, which contains each output's error sum, followed by the number
  /// of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns false, because lower values are better. The best value is 0.
  std::optional<bool> higher_is_better() const override { return false; }

 private:
  MeanSquaredErrorOptions options_;
};

/// Computes the mean absolute error between `preds` and `target`. Shapes, types, and NaN are
/// handled as in `MeanSquaredError`.
/// Python: `torchmetrics.MeanAbsoluteError`.
class MeanAbsoluteError : public Metric {
 public:
  /// @throw c10::Error if `num_outputs` is below 1.
  explicit MeanAbsoluteError(MeanAbsoluteErrorOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if:
  /// - the shapes differ, or a tensor is complex;
  /// - `num_outputs` is above 1, and the shapes are not `(N, num_outputs)`.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the error from `sums`, which contains each output's error sum, followed by the number
  /// of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns false, because lower values are better. The best value is 0.
  std::optional<bool> higher_is_better() const override { return false; }

 private:
  MeanAbsoluteErrorOptions options_;
};

/// Computes the mean of |preds - target| / |target| over all elements. `preds` and `target` must
/// have the same shape. The result is a 0-dim float64 tensor. A value of 1 corresponds to a 100%
/// error. The result is NaN if there are no examples. Target magnitudes below 1.17e-6 are treated
/// as 1.17e-6. Types and NaN are handled as in `MeanSquaredError`.
/// Python: `torchmetrics.MeanAbsolutePercentageError`.
class MeanAbsolutePercentageError : public Metric {
 public:
  MeanAbsolutePercentageError() : Metric(2) {}
  /// Adds a batch.
  /// @throw c10::Error if the shapes differ, or if a tensor is complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the error from `sums`, which contains the sum of errors and the element count.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns false, because lower values are better. The best value is 0.
  std::optional<bool> higher_is_better() const override { return false; }
};

/// Computes the coefficient of determination, the fraction of the variance in `target` that `preds`
/// explains. `preds` and `target` have shape (N,) or `(N, num_outputs)`. Computations use float64.
///
/// The result is a float64 tensor whose values are at most 1. For `raw_values` with several
/// outputs, the tensor has shape `(num_outputs,)`. Otherwise, it is 0-dim. Values are NaN if there
/// are fewer than two examples. As in Python, sums of squares up to 1e-4 are treated as 0. The
/// score is 1 if the sum of squared residuals is 0. If only the total sum of squares is 0, the
/// score is 0. If there are too few examples for `adjusted`, the unadjusted score is returned.
/// Python: `torchmetrics.R2Score`.
class R2Score : public Metric {
 public:
  /// @throw c10::Error if `num_outputs` is below 1, or if `adjusted` is negative.
  explicit R2Score(R2ScoreOptions options = {});
  /// Adds a batch.
  /// @throw c10::Error if the shapes differ, if they are not `(N, num_outputs)`, or if a tensor is
  /// complex.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the score from `sums`, which contains each output's sum of squared targets, then each
  /// output's sum of targets, then each output's sum of squared residuals, and finally the number
  /// of examples.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns true, because higher values are better. The best score is 1.
  std::optional<bool> higher_is_better() const override { return true; }

 private:
  R2ScoreOptions options_;
};

}  // namespace sconce::metrics
