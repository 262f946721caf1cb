#include "sconce/metrics/mean_metric.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

namespace sconce::metrics {

namespace {

void check_real(const torch::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.defined() && !tensor.is_complex(), "sconce::metrics::MeanMetric: expected a ",
              name, " of real numbers, got ",
              tensor.defined() ? toString(tensor.scalar_type()) : "an undefined tensor");
}

}  // namespace

void MeanMetric::update(const torch::Tensor& value, const torch::Tensor& weight) {
  check_real(value, "value");
  check_real(weight, "weight");
  const at::NoGradGuard no_grad;
  const auto weights = weight.to(at::kDouble).expand(value.sizes());
  add(at::stack({(value * weights).sum(), weights.sum()}));
}

void MeanMetric::update(const torch::Tensor& value, double weight) {
  check_real(value, "value");
  const at::NoGradGuard no_grad;
  const auto sum = value.sum(at::kDouble);
  add(at::stack({sum * weight, at::full_like(sum, weight * static_cast<double>(value.numel()))}));
}

torch::Tensor MeanMetric::compute(const torch::Tensor& sums) const {
  return sums.select(0, 0) / sums.select(0, 1);
}

}  // namespace sconce::metrics
