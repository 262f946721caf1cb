// The backward pass of the fused RMS norm, which exists only for CUDA.

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Tensor;

std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor& grad, const Tensor& input,
                                                   at::IntArrayRef normalized_shape,
                                                   const Tensor& rstd,
                                                   const std::optional<Tensor>& weight,
                                                   std::array<bool, 2> mask) {
  const auto type = at::toOpMathType(input.scalar_type());
  const bool has_weight = weight && weight->defined();
  std::vector<int64_t> inner, outer;
  for (int64_t i = 0; i < input.dim(); ++i) {
    const bool is_inner = i >= input.dim() - static_cast<int64_t>(normalized_shape.size());
    (is_inner ? inner : outer).push_back(i);
  }
  const auto grads = grad.to(type);
  const auto normed = input.to(type) * rstd;
  Tensor grad_input, grad_weight;
  if (mask[0]) {
    const auto scaled = has_weight ? grads * weight->to(type) : grads;
    grad_input =
        ((scaled - normed * (scaled * normed).mean(inner, true)) * rstd).to(input.scalar_type());
  }
  if (mask[1] && has_weight) {
    const auto product = grads * normed;
    grad_weight = (outer.empty() ? product : product.sum(outer)).to(weight->scalar_type());
  }
  return {grad_input, grad_weight};
}

}  // namespace

void add_rms_norms(OwnKernels& kernels) {
  add_own(kernels, "_fused_rms_norm_backward", "", &fused_rms_norm_backward);
}

}  // namespace simgpu
