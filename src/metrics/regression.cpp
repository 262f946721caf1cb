#include "sconce/metrics/regression.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

namespace sconce::metrics {

namespace {

int64_t sums_of(int64_t num_outputs, const char* who) {
  TORCH_CHECK(num_outputs >= 1, who, ": expected num_outputs of 1 or more, got ", num_outputs);
  return num_outputs + 1;
}

// Returns preds - target with shape (examples, num_outputs).
torch::Tensor differences(const torch::Tensor& preds, const torch::Tensor& target,
                          int64_t num_outputs, const char* who) {
  TORCH_CHECK(preds.defined() && target.defined(), who,
              ": expected preds and target, got an undefined tensor");
  // Broadcasting, such as of (N, 1) and (N,), would give N * N differences.
  TORCH_CHECK(preds.sizes() == target.sizes(), who,
              ": expected preds and target of the same sizes, got ", preds.sizes(), " and ",
              target.sizes());
  TORCH_CHECK(num_outputs == 1 || (preds.dim() == 2 && preds.size(1) == num_outputs), who,
              ": expected sizes (N, ", num_outputs, "), got ", preds.sizes());
  TORCH_CHECK(preds.device() == target.device(), who,
              ": expected preds and target on one device, got ", preds.device(), " and ",
              target.device());
  TORCH_CHECK(!preds.is_complex() && !target.is_complex(), who, ": expected real numbers, got ",
              preds.scalar_type(), " and ", target.scalar_type());
  const auto common = c10::promoteTypes(preds.scalar_type(), target.scalar_type());
  const auto type =
      at::isFloatingType(common) ? c10::promoteTypes(common, at::kFloat) : at::kDouble;
  return (preds.to(type) - target.to(type)).reshape({preds.numel() / num_outputs, num_outputs});
}

// Returns the sum of each output, and the number of examples.
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

}  // namespace sconce::metrics
