#include "sconce/metrics/metric.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include "capture_scope.hpp"

namespace sconce::metrics {

namespace {

void check_sums(const torch::Tensor& sums, int64_t size, const char* caller) {
  TORCH_CHECK(sums.defined(), caller, ": expected ", size, " sums, got an undefined tensor");
  TORCH_CHECK(sums.numel() == size, caller, ": expected ", size, " sums, got a tensor of shape ",
              sums.sizes());
}

}  // namespace

Metric::Metric(int64_t size) {
  TORCH_CHECK(size > 0, "sconce::metrics::Metric: expected at least 1 sum, got ", size);
  sums_ = at::zeros({size}, at::kDouble);
}

Metric::Metric(const Metric& other) : sums_(other.sums()) {}

Metric& Metric::operator=(const Metric& other) {
  set_sums(other.sums_);
  return *this;
}

void Metric::reset() {
  if (is_captured_) {
    sums_.zero_();
  } else {
    sums_ = at::zeros_like(sums_);
  }
}

torch::Tensor Metric::sums() const {
  return is_captured_ ? sums_.clone() : sums_;
}

void Metric::set_sums(const torch::Tensor& sums) {
  check_sums(sums, sums_.numel(), "sconce::metrics::Metric::set_sums");
  if (is_captured_) {
    sums_.copy_(sums.detach().flatten());
  } else {
    sums_ = sums.detach().flatten().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  }
}

void Metric::add(const torch::Tensor& batch_sums) {
  check_sums(batch_sums, sums_.numel(), "sconce::metrics::Metric::add");
  const at::NoGradGuard no_grad;
  const auto added = batch_sums.dim() == 1 ? batch_sums : batch_sums.flatten();
  if (sums_.device() != added.device()) sums_ = sums_.to(added.device());
  if (is_captured_) {
    sums_.add_(added);
  } else {
    sums_ = sums_ + added;  // out of place: keeps copies and results of sums() unchanged
    is_captured_ = detail::CaptureScope::is_active();
  }
}

}  // namespace sconce::metrics
