#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace simgpu {

/// The arguments of an attention operation on CPU tensors of shape (batch, heads, length, dim). The
/// number of query heads is a multiple of the number of key and value heads.
struct Attention {
  at::Tensor query = {};
  at::Tensor key = {};
  at::Tensor value = {};
  /// A bias added to the scores, expandable to (batch, heads, query length, key length).
  std::optional<at::Tensor> bias = {};
  /// Whether position i of the query attends only to positions 0 to i of the key.
  bool is_causal = false;
  double dropout_p = 0;
  /// The seed of the dropout, stored in a tensor with a single int64.
  at::Tensor seed = {};
  std::optional<double> scale = {};
};

struct AttentionOutput {
  /// The output, (batch, heads, query length, value dim).
  at::Tensor output = {};
  /// The logsumexp of each row of scores, (batch, heads, query length), in float32.
  at::Tensor logsumexp = {};
};

/// Gradients with the same sizes as the arguments. The bias gradient is undefined unless requested.
struct AttentionGradients {
  at::Tensor query = {};
  at::Tensor key = {};
  at::Tensor value = {};
  at::Tensor bias = {};
};

/// Returns the tensor, or std::nullopt if LibTorch passes an undefined tensor.
inline std::optional<at::Tensor> given(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor : std::nullopt;
}

/// Returns a seed for the random operator being called, or 0 if there is no dropout.
at::Tensor attention_seed(double dropout_p);

/// Returns the number of rows that the memory-efficient kernel uses to store the logsumexp for this
/// query length.
int64_t padded_rows(int64_t length);

/// Computes the attention with the CPU's fused kernel, or in separate steps if that kernel does not
/// support the arguments (with dropout, or if the value and the query have different dims).
AttentionOutput attend(const Attention& attention);

/// Computes the gradients of `attend`, given the output's gradient.
AttentionGradients attend_backward(const Attention& attention, const AttentionOutput& output,
                                   const at::Tensor& grad, bool needs_bias);

}  // namespace simgpu
