// The fused kernels that scaled_dot_product_attention can select: flash, memory-efficient, and
// cuDNN attention.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <array>
#include <tuple>

#include "simgpu/kernels/attention.hpp"
#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Scale = std::optional<double>;

// The return values of flash and cuDNN attention: the output, the logsumexp, the sequence offsets
// of the query and the key, their maximum lengths, two random-state tensors, and a debug mask.
using Returned =
    std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t, int64_t, Tensor, Tensor, Tensor>;

Tensor no_debug_mask(const Tensor& query, bool is_requested) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_requested,
                              "simulated GPUs: the debug mask of attention is not supported");
  return at::empty({0}, query.options());
}

Returned flash(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p,
               bool is_causal, bool debug, Scale scale) {
  const auto seed = attention_seed(dropout_p);
  const auto [output, logsumexp] = attend({.query = query,
                                           .key = key,
                                           .value = value,
                                           .is_causal = is_causal,
                                           .dropout_p = dropout_p,
                                           .seed = seed,
                                           .scale = scale});
  return {output,
          logsumexp,
          Tensor(),
          Tensor(),
          query.size(2),
          key.size(2),
          at::stack({seed, seed}).view(at::kUInt64),
          at::empty({}, at::kUInt64),
          no_debug_mask(query, debug)};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& output, const Tensor& logsumexp, const Tensor&, const Tensor&, int64_t, int64_t,
    double dropout_p, bool is_causal, const Tensor& random_state, const Tensor&, Scale scale) {
  const auto grads = attend_backward({.query = query,
                                      .key = key,
                                      .value = value,
                                      .is_causal = is_causal,
                                      .dropout_p = dropout_p,
                                      .seed = random_state.view(at::kLong).select(0, 0),
                                      .scale = scale},
                                     {output, logsumexp}, grad, false);
  return {grads.query, grads.key, grads.value};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient(const Tensor& query, const Tensor& key,
                                                     const Tensor& value,
                                                     const OptionalTensor& bias,
                                                     bool compute_logsumexp, double dropout_p,
                                                     bool is_causal, Scale scale) {
  const auto seed = attention_seed(dropout_p);
  const auto [output, logsumexp] =
      attend({query, key, value, given(bias), is_causal, dropout_p, seed, scale});
  const auto rows = compute_logsumexp ? padded_rows(query.size(2)) : 0;
  auto padded = at::empty({query.size(0), query.size(1), rows}, logsumexp.options());
  if (compute_logsumexp) padded.narrow(2, 0, query.size(2)).copy_(logsumexp);
  return {output, padded, seed, at::empty({}, at::kLong)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& bias, const Tensor& output, const Tensor& logsumexp, const Tensor& seed,
    const Tensor&, double dropout_p, std::array<bool, 4> mask, bool is_causal, Scale scale) {
  if (!grad.defined()) return {};
  const auto grads = attend_backward(
      {query, key, value, given(bias), is_causal, dropout_p, seed, scale},
      {output, logsumexp.narrow(2, 0, query.size(2))}, grad, mask[3] && bias.defined());
  return {grads.query, grads.key, grads.value, grads.bias};
}

Returned cudnn(const Tensor& query, const Tensor& key, const Tensor& value,
               const OptionalTensor& bias, bool, double dropout_p, bool is_causal, bool debug,
               Scale scale) {
  const auto seed = attention_seed(dropout_p);
  const auto [output, logsumexp] =
      attend({query, key, value, given(bias), is_causal, dropout_p, seed, scale});
  return {output,
          logsumexp.unsqueeze(3),
          Tensor(),
          Tensor(),
          query.size(2),
          key.size(2),
          seed,
          at::empty({}, at::kLong),
          no_debug_mask(query, debug)};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_backward(const Tensor& grad, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor& output, const Tensor& logsumexp,
                                                  const Tensor& seed, const Tensor&,
                                                  const Tensor& bias, const Tensor&, const Tensor&,
                                                  int64_t, int64_t, double dropout_p,
                                                  bool is_causal, Scale scale) {
  const auto grads =
      attend_backward({query, key, value, given(bias), is_causal, dropout_p, seed, scale},
                      {output, logsumexp.squeeze(3)}, grad, false);
  return {grads.query, grads.key, grads.value};
}

}  // namespace

void add_fused_attentions(OwnKernels& kernels) {
  add_own(kernels, "_scaled_dot_product_flash_attention", "", &flash);
  add_own(kernels, "_scaled_dot_product_flash_attention_backward", "", &flash_backward);
  add_own(kernels, "_scaled_dot_product_efficient_attention", "", &efficient);
  add_own(kernels, "_scaled_dot_product_efficient_attention_backward", "", &efficient_backward);
  add_own(kernels, "_scaled_dot_product_cudnn_attention", "", &cudnn);
  add_own(kernels, "_scaled_dot_product_cudnn_attention_backward", "", &cudnn_backward);
}

}  // namespace simgpu
