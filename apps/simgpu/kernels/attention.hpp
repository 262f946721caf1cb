#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace simgpu {

/// An attention over tensors of the CPU with sizes (batch, heads, length, dim). Key and value may
/// have fewer heads than the query, by a whole factor.
struct Attention {
  at::Tensor query = {};
  at::Tensor key = {};
  at::Tensor value = {};
  /// Added to the scores; expands to (batch, heads, length of the query, length of the key).
  std::optional<at::Tensor> bias = {};
  /// Whether position i of the query sees positions 0 to i of the key.
  bool is_causal = false;
  double dropout_p = 0;
  /// Seed of the dropout: a tensor with one int64.
  at::Tensor seed = {};
  std::optional<double> scale = {};
};

struct AttentionOutput {
  /// (batch, heads, length of the query, dim of the value).
  at::Tensor output = {};
  /// Of each row of scores: (batch, heads, length of the query), in float32.
  at::Tensor logsumexp = {};
};

/// Gradients with the sizes of the arguments. That of the bias is undefined unless requested.
struct AttentionGradients {
  at::Tensor query = {};
  at::Tensor key = {};
  at::Tensor value = {};
  at::Tensor bias = {};
};

/// Returns the tensor, or nothing if LibTorch passes an undefined one.
inline std::optional<at::Tensor> given(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor : std::nullopt;
}

/// Returns a seed of the random operator that is being called; 0 if nothing is dropped.
at::Tensor attention_seed(double dropout_p);

/// Returns the rows in which the efficient kernel keeps the logsumexp of a query of this length.
int64_t padded_rows(int64_t length);

/// Computes the attention by the CPU's fused kernel, or in steps where that has no such case:
/// dropout, or a value with another dim than the query.
AttentionOutput attend(const Attention& attention);

/// Computes the gradients of `attend`, given the output's gradient.
AttentionGradients attend_backward(const Attention& attention, const AttentionOutput& output,
                                   const at::Tensor& grad, bool needs_bias);

}  // namespace simgpu
