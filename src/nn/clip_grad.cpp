#include "sconce/nn/clip_grad.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "tensor_groups.hpp"

namespace sconce::nn {

namespace {

TensorGroups group_gradients(const std::vector<torch::Tensor>& parameters) {
  TensorGroups groups;
  SeenTensors seen;
  seen.reserve(parameters.size());
  for (const auto& parameter : parameters) {
    const auto& grad = parameter.grad();
    if (!grad.defined() || !seen.insert(grad.unsafeGetTensorImpl()).second) continue;
    add_to_group(groups, grad);
  }
  return groups;
}

torch::Tensor total_norm(const TensorGroups& groups, double norm_type) {
  std::vector<torch::Tensor> norms;
  for (const auto& group : groups) {
    for (auto& norm : at::_foreach_norm(group, norm_type)) {
      norms.push_back(norm.to(groups.front().front().device()));
    }
  }
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

}  // namespace

torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              ClipGradOptions options) {
  const at::NoGradGuard no_grad;
  const TensorGroups groups = group_gradients(parameters);
  if (groups.empty()) return at::zeros({});
  torch::Tensor norm = total_norm(groups, options.norm_type);
  if (options.error_if_nonfinite) {
    const double value = norm.item<double>();
    TORCH_CHECK(std::isfinite(value),
                "sconce::nn::clip_grad_norm_: expected a finite norm of order ", options.norm_type,
                " over the gradients, got ", value);
  }
  // Always multiplies, because checking on the host whether the norm is too large would require
  // waiting for the device. Python divides a number by a tensor in these two steps, which round
  // differently than a single division.
  const torch::Tensor factor = ((norm + 1e-6).reciprocal() * max_norm).clamp_max(1.0);
  for (const auto& group : groups) at::_foreach_mul_(group, factor.to(group.front().device()));
  return norm;
}

void clip_grad_value_(const std::vector<torch::Tensor>& parameters, double clip_value) {
  const at::NoGradGuard no_grad;
  for (const auto& group : group_gradients(parameters)) {
    at::_foreach_clamp_min_(group, -clip_value);
    at::_foreach_clamp_max_(group, clip_value);
  }
}

}  // namespace sconce::nn
