// The fused LSTM and GRU cells, which exist only for CUDA.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool has(const OptionalTensor& tensor) {
  return tensor && tensor->defined();
}

Tensor with_bias(const Tensor& gates, const OptionalTensor& bias) {
  return has(bias) ? gates + *bias : gates;
}

Tensor bias_grad(const Tensor& grad, bool has_bias) {
  return has_bias ? grad.sum(0) : Tensor();
}

// The workspace stores the gates after the activation functions are applied.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                             const Tensor& cx, const OptionalTensor& input_bias,
                                             const OptionalTensor& hidden_bias) {
  const auto gates = with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias);
  const auto parts = gates.chunk(4, 1);
  const auto in = parts[0].sigmoid();
  const auto forget = parts[1].sigmoid();
  const auto cell = parts[2].tanh();
  const auto out = parts[3].sigmoid();
  const auto cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(const OptionalTensor& grad_hy,
                                                      const OptionalTensor& grad_cy,
                                                      const Tensor& cx, const Tensor& cy,
                                                      const Tensor& workspace, bool has_bias) {
  if (!has(grad_hy) && !has(grad_cy)) return {};
  const auto parts = workspace.chunk(4, 1);
  const auto &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const auto squashed = cy.tanh();
  const auto grad_h = has(grad_hy) ? *grad_hy : at::zeros_like(cx);
  const auto grad_c =
      grad_h * out * (1 - squashed * squashed) + (has(grad_cy) ? *grad_cy : at::zeros_like(cx));
  const auto grad_gates =
      at::cat({grad_c * cell * in * (1 - in), grad_c * cx * forget * (1 - forget),
               grad_c * in * (1 - cell * cell), grad_h * squashed * out * (1 - out)},
              1);
  return {grad_gates, grad_c * forget, bias_grad(grad_gates, has_bias)};
}

// The workspace stores the gates, hx, and the hidden contribution to the new gate.
std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                    const Tensor& hx, const OptionalTensor& input_bias,
                                    const OptionalTensor& hidden_bias) {
  const auto input = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const auto reset = (input[0] + hidden[0]).sigmoid();
  const auto update = (input[1] + hidden[1]).sigmoid();
  const auto fresh = (input[2] + reset * hidden[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(const Tensor& grad_hy,
                                                                     const Tensor& workspace,
                                                                     bool has_bias) {
  const auto parts = workspace.chunk(5, 1);
  const auto &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3];
  const auto grad_update = grad_hy * (hx - fresh) * update * (1 - update);
  const auto grad_fresh = grad_hy * (1 - update) * (1 - fresh * fresh);
  const auto grad_reset = grad_fresh * parts[4] * reset * (1 - reset);
  const auto grad_input = at::cat({grad_reset, grad_update, grad_fresh}, 1);
  const auto grad_hidden = at::cat({grad_reset, grad_update, grad_fresh * reset}, 1);
  return {grad_input, grad_hidden, grad_hy * update, bias_grad(grad_input, has_bias),
          bias_grad(grad_hidden, has_bias)};
}

}  // namespace

void add_recurrent_cells(OwnKernels& kernels) {
  add_own(kernels, "_thnn_fused_lstm_cell", "", &lstm_cell);
  add_own(kernels, "_thnn_fused_lstm_cell_backward_impl", "", &lstm_cell_backward);
  add_own(kernels, "_thnn_fused_gru_cell", "", &gru_cell);
  add_own(kernels, "_thnn_fused_gru_cell_backward", "", &gru_cell_backward);
}

}  // namespace simgpu
