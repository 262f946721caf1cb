#include "sconce/metrics/regression.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <limits>

#include "metrics/check_pair.hpp"

namespace sconce::metrics {

namespace {

int64_t sums_of(int64_t num_outputs, const char* caller) {
  TORCH_CHECK(num_outputs >= 1, caller, ": expected num_outputs to be at least 1, got ",
              num_outputs);
  return num_outputs + 1;
}

// Returns preds - target with shape (examples, num_outputs).
torch::Tensor differences(const torch::Tensor& preds, const torch::Tensor& target,
                          int64_t num_outputs, const char* caller) {
  check_pair(preds, target, caller);
  TORCH_CHECK(num_outputs == 1 || (preds.dim() == 2 && preds.size(1) == num_outputs), caller,
              ": expected sizes (N, ", num_outputs, "), got ", preds.sizes());
  const auto common = c10::promoteTypes(preds.scalar_type(), target.scalar_type());
  const auto type =
      at::isFloatingType(common) ? c10::promoteTypes(common, at::kFloat) : at::kDouble;
  return (preds.to(type) - target.to(type)).reshape({preds.numel() / num_outputs, num_outputs});
}

// Returns the sum for each output, and the number of examples.
torch::Tensor with_count(const torch::Tensor& errors) {
  const auto sums = errors.sum(0, /*keepdim=*/false, at::kDouble);
  return at::cat({sums, at::full({1}, errors.size(0), sums.options())});
}

torch::Tensor mean_of(const torch::Tensor& sums, int64_t num_outputs) {
  const auto means = sums.narrow(0, 0, num_outputs) / sums.select(0, num_outputs);
  return num_outputs == 1 ? means.select(0, 0) : means;
}

constexpr auto mean_squared_error = "sconce::metrics::MeanSquaredError";
constexpr auto mean_absolute_error = "sconce::metrics::MeanAbsoluteError";
constexpr auto r2_score = "sconce::metrics::R2Score";

int64_t checked_outputs(const R2ScoreOptions& options) {
  TORCH_CHECK(options.num_outputs >= 1, r2_score, ": expected num_outputs to be at least 1, got ",
              options.num_outputs);
  TORCH_CHECK(options.adjusted >= 0, r2_score, ": expected adjusted to be at least 0, got ",
              options.adjusted);
  return options.num_outputs;
}

// Matches the way torchmetrics compares a sum with 0 (`isclose`). A nan sum is not close to 0.
torch::Tensor vanishes(const torch::Tensor& sum) {
  return sum.abs().le(1e-4);
}

}  // namespace

MeanSquaredError::MeanSquaredError(MeanSquaredErrorOptions options)
    : Metric(sums_of(options.num_outputs, mean_squared_error)), options_(options) {}

void MeanSquaredError::update(const torch::Tensor& preds, const torch::Tensor& target) {
  const at::NoGradGuard no_grad;
  add(with_count(differences(preds, target, options_.num_outputs, mean_squared_error).square_()));
}

torch::Tensor MeanSquaredError::compute(const torch::Tensor& sums) const {
  const auto squared = mean_of(sums, options_.num_outputs);
  return options_.squared ? squared : squared.sqrt();
}

MeanAbsoluteError::MeanAbsoluteError(MeanAbsoluteErrorOptions options)
    : Metric(sums_of(options.num_outputs, mean_absolute_error)), options_(options) {}

void MeanAbsoluteError::update(const torch::Tensor& preds, const torch::Tensor& target) {
  const at::NoGradGuard no_grad;
  add(with_count(differences(preds, target, options_.num_outputs, mean_absolute_error).abs_()));
}

torch::Tensor MeanAbsoluteError::compute(const torch::Tensor& sums) const {
  return mean_of(sums, options_.num_outputs);
}

void MeanAbsolutePercentageError::update(const torch::Tensor& preds, const torch::Tensor& target) {
  const at::NoGradGuard no_grad;
  const auto errors =
      differences(preds, target, /*num_outputs=*/1, "sconce::metrics::MeanAbsolutePercentageError")
          .abs_();
  const auto size = target.to(errors.scalar_type()).abs().clamp_min_(1.17e-6);
  add(with_count(errors.div_(size.reshape_as(errors))));
}

torch::Tensor MeanAbsolutePercentageError::compute(const torch::Tensor& sums) const {
  return mean_of(sums, /*num_outputs=*/1);
}

R2Score::R2Score(R2ScoreOptions options)
    : Metric(3 * checked_outputs(options) + 1), options_(options) {}

void R2Score::update(const torch::Tensor& preds, const torch::Tensor& target) {
  const at::NoGradGuard no_grad;
  check_pair(preds, target, r2_score);
  const int64_t outputs = options_.num_outputs;
  TORCH_CHECK((preds.dim() == 1 && outputs == 1) || (preds.dim() == 2 && preds.size(1) == outputs),
              r2_score, ": expected sizes (N, ", outputs, "), got ", preds.sizes());
  const auto right = target.to(at::kDouble).view({target.size(0), outputs});
  const auto residuals = right - preds.to(at::kDouble).view_as(right);
  add(with_count(at::cat({right.square(), right, residuals.square()}, 1)));
}

torch::Tensor R2Score::compute(const torch::Tensor& sums) const {
  const auto count = sums.select(0, 3 * options_.num_outputs);
  const auto parts = sums.narrow(0, 0, 3 * options_.num_outputs).view({3, -1}).unbind();
  const auto &squares = parts[0], &targets = parts[1], &residuals = parts[2];
  const auto variance = squares - targets * (targets / count);
  const auto scores = at::where(vanishes(variance), 0., 1 - residuals / variance)
                          .masked_fill_(vanishes(residuals), 1);
  torch::Tensor score = scores;
  if (options_.multioutput == Multioutput::uniform_average) score = scores.mean();
  if (options_.multioutput == Multioutput::variance_weighted) {
    score = (variance / variance.sum() * scores).sum();
  }
  if (options_.num_outputs == 1) score = score.squeeze();
  const auto freedom = count - 1 - options_.adjusted;
  if (options_.adjusted > 0) {
    score = at::where(freedom.gt(0), 1 - (1 - score) * (count - 1) / freedom, score);
  }
  return score.masked_fill(count.lt(2), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace sconce::metrics
