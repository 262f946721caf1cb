#include "simgpu/kernels/attention.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "simgpu/kernels/random.hpp"

namespace simgpu {

namespace {

using at::Tensor;

// Returns the number of query heads for each key head.
int64_t group_size(const Attention& attention) {
  return attention.query.size(1) / attention.key.size(1);
}

Tensor with_all_heads(const Tensor& tensor, int64_t group) {
  return group == 1 ? tensor : tensor.repeat_interleave(group, 1);
}

Tensor sum_of_groups(const Tensor& grad, int64_t group) {
  return group == 1 ? grad : grad.unflatten(1, {grad.size(1) / group, group}).sum(2);
}

// Converts to the fused kernels' output layout, in which the heads of each position are adjacent.
Tensor in_kernel_layout(const Tensor& tensor) {
  return tensor.transpose(1, 2).contiguous().transpose(1, 2);
}

bool has_cpu_kernel(const Attention& attention) {
  const bool has_both_masks = attention.is_causal && attention.bias;
  return attention.dropout_p == 0 && attention.query.size(3) == attention.value.size(3) &&
         !has_both_masks && attention.query.numel() > 0 && attention.key.numel() > 0;
}

// Float32 values shared by the forward and backward passes of an attention operation.
struct Steps {
  explicit Steps(const Attention& attention);

  Tensor query, key, value;
  double scale;
  Tensor logsumexp;
  Tensor weights;
  Tensor kept;  // factor for each weight: 0 or 1 / (1 - p); undefined without dropout

  Tensor drop(const Tensor& tensor) const { return kept.defined() ? tensor * kept : tensor; }
};

Tensor kept_of(const Attention& attention, const Tensor& weights) {
  if (attention.dropout_p == 0) return {};
  auto generator = at::make_generator<at::CPUGeneratorImpl>(
      static_cast<uint64_t>(attention.seed.item<int64_t>()));
  const auto keep = 1 - attention.dropout_p;
  const auto kept = at::empty_like(weights).bernoulli_(keep, generator);
  return keep == 0 ? kept : kept / keep;
}

Steps::Steps(const Attention& attention)
    : query(attention.query.to(at::kFloat)),
      key(with_all_heads(attention.key, group_size(attention)).to(at::kFloat)),
      value(with_all_heads(attention.value, group_size(attention)).to(at::kFloat)),
      scale(attention.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))))) {
  auto scores = query.matmul(key.transpose(2, 3)) * scale;
  if (attention.bias) scores = scores + *attention.bias;
  if (attention.is_causal) {
    const auto sees = at::ones({scores.size(2), scores.size(3)}, at::kBool).tril();
    scores = scores.masked_fill(sees.logical_not(), -std::numeric_limits<double>::infinity());
  }
  logsumexp = scores.logsumexp({3});
  // If a row does not attend to any position, its weights are 0.
  weights = scores.softmax(3).masked_fill(logsumexp.isneginf().unsqueeze(3), 0);
  kept = kept_of(attention, weights);
}

AttentionOutput attend_in_steps(const Attention& attention) {
  const Steps steps(attention);
  const auto output = steps.drop(steps.weights).matmul(steps.value);
  return {in_kernel_layout(output.to(attention.query.scalar_type())), steps.logsumexp};
}

AttentionGradients backward_in_steps(const Attention& attention, const Tensor& grad,
                                     bool needs_bias) {
  const Steps steps(attention);
  const auto type = attention.query.scalar_type();
  const auto group = group_size(attention);
  const auto grads = grad.to(at::kFloat);
  const auto grad_value = steps.drop(steps.weights).transpose(2, 3).matmul(grads);
  const auto grad_weights = steps.drop(grads.matmul(steps.value.transpose(2, 3)));
  const auto mean = (grad_weights * steps.weights).sum(3, /*keepdim=*/true);
  const auto grad_scores = steps.weights * (grad_weights - mean);
  AttentionGradients gradients{
      .query = (grad_scores.matmul(steps.key) * steps.scale).to(type),
      .key = (grad_scores.transpose(2, 3).matmul(steps.query) * steps.scale).to(type),
      .value = grad_value.to(type)};
  gradients.key = sum_of_groups(gradients.key, group);
  gradients.value = sum_of_groups(gradients.value, group);
  if (needs_bias) {
    gradients.bias =
        at::sum_to(grad_scores, attention.bias->sizes()).to(attention.bias->scalar_type());
  }
  return gradients;
}

}  // namespace

Tensor attention_seed(double dropout_p) {
  if (dropout_p == 0) return at::zeros({}, at::kLong);
  return at::empty({}, at::kLong).random_(call_generator());
}

int64_t padded_rows(int64_t length) {
  constexpr int64_t block = 32;
  return (length + block - 1) / block * block;
}

AttentionOutput attend(const Attention& attention) {
  if (!has_cpu_kernel(attention)) return attend_in_steps(attention);
  const auto group = group_size(attention);
  const auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      attention.query, with_all_heads(attention.key, group), with_all_heads(attention.value, group),
      0, attention.is_causal, attention.bias, attention.scale);
  return {output, logsumexp};
}

AttentionGradients attend_backward(const Attention& attention, const AttentionOutput& output,
                                   const Tensor& grad, bool needs_bias) {
  if (needs_bias || !has_cpu_kernel(attention)) {
    return backward_in_steps(attention, grad, needs_bias);
  }
  const auto group = group_size(attention);
  const auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad, attention.query, with_all_heads(attention.key, group),
      with_all_heads(attention.value, group), output.output, in_kernel_layout(output.logsumexp), 0,
      attention.is_causal, attention.bias, attention.scale);
  return {.query = query, .key = sum_of_groups(key, group), .value = sum_of_groups(value, group)};
}

}  // namespace simgpu
