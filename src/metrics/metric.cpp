#include "sconce/metrics/metric.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

namespace sconce::metrics {

namespace {

void check_sums(const torch::Tensor& sums, int64_t size, const char* who) {
  TORCH_CHECK(sums.defined(), who, ": expected ", size, " sums, got an undefined tensor");
  TORCH_CHECK(sums.numel() == size, who, ": expected ", size, " sums, got a tensor of sizes ",
              sums.sizes());
}

}  // namespace

Metric::Metric(int64_t size) {
  TORCH_CHECK(size > 0, "sconce::metrics::Metric: expected 1 sum or more, got ", size);
  sums_ = at::zeros({size}, at::kDouble);
}

void Metric::reset() {
  sums_ = at::zeros_like(sums_);
}

void Metric::set_sums(const torch::Tensor& sums) {
  check_sums(sums, sums_.numel(), "sconce::metrics::Metric::set_sums");
  sums_ = sums.detach().flatten().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
}

void Metric::add(const torch::Tensor& batch_sums) {
  check_sums(batch_sums, sums_.numel(), "sconce::metrics::Metric::add");
  const at::NoGradGuard no_grad;
  // This is not in place, so that copies and results of sums() do not change.
  if (sums_.device() != batch_sums.device()) sums_ = sums_.to(batch_sums.device());
  sums_ = sums_ + (batch_sums.dim() == 1 ? batch_sums : batch_sums.flatten());
}

}  // namespace sconce::metrics
