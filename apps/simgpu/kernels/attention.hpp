#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace simgpu {

/// An attention over CPU tensors with sizes (batch, heads, length, dim). The number of query heads
/// is a multiple of the number of key and value heads.
struct Attention {
  at::Tensor query = {};
  at::Tensor key = {};
  at::Tensor value = {};
  /// Added to the scores; expandable to (batch, heads, query length, key length).
  std::optional<at::Tensor> bias = {};
  /// Whether position i of the query sees positions 0 to i of the key.
  bool is_causal = false;
  double dropout_p = 0;
  /// Seed of the dropout: a tensor with a single int64.
  at::Tensor seed = {};
  std::optional<double> scale = {};
};

struct AttentionOutput {
  /// (batch, heads, query length, value dim).
  at::Tensor output = {};
  /// For each row of scores: (batch, heads, query length), in float32.
  at::Tensor logsumexp = {};
};

/// Gradients with the sizes of the arguments. The bias gradient is undefined unless requested.
struct AttentionGradients {
  at::Tensor query = {};
  at::Tensor key = {};
  at::Tensor value = {};
  at::Tensor bias = {};
};

/// Returns the tensor, or nothing if LibTorch passes an undefined tensor.
inline std::optional<at::Tensor> given(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor : std::nullopt;
}

/// Returns a seed for the random operator that is being called, or 0 without dropout.
at::Tensor attention_seed(double dropout_p);

/// Returns the number of rows in which the efficient kernel stores the logsumexp for this query
/// length.
int64_t padded_rows(int64_t length);

/// Computes the attention with the CPU's fused kernel, or in separate steps if the kernel does not
/// support the case: dropout, or different dims for value and query.
AttentionOutput attend(const Attention& attention);

/// Computes the gradients of `attend`, given the output's gradient.
AttentionGradients attend_backward(const Attention& attention, const AttentionOutput& output,
                                   const at::Tensor& grad, bool needs_bias);

}  // namespace simgpu
