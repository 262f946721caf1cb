#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <tuple>

#include "sconce/nn/tensor_tree.hpp"
#include "sconce/repr.hpp"

namespace sconce::nn {

/// Options for `MultiheadAttention`, with the same names and defaults as in Python.
struct MultiheadAttentionOptions {
  /// Sets `embed_dim` and `num_heads` and leaves all other options at their defaults. `kdim` and
  /// `vdim` default to `embed_dim`.
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}

  TORCH_ARG(int64_t, embed_dim);           ///< feature size of the queries and output
  TORCH_ARG(int64_t, num_heads);           ///< number of heads; must divide `embed_dim`
  TORCH_ARG(double, dropout) = 0;          ///< dropout probability of the attention weights
  TORCH_ARG(bool, bias) = true;            ///< whether the projections have a bias
  TORCH_ARG(bool, add_bias_kv) = false;    ///< whether to append a learned key and a learned value
  TORCH_ARG(bool, add_zero_attn) = false;  ///< whether to append a key and a value filled with
                                           ///< zeros
  TORCH_ARG(int64_t, kdim);                ///< feature size of the keys
  TORCH_ARG(int64_t, vdim);                ///< feature size of the values
  TORCH_ARG(bool, batch_first) = false;    ///< whether batches are `(N, L, E)` instead of
                                           ///< `(L, N, E)`
};

/// Optional arguments for `MultiheadAttention`. A mask is either a boolean tensor, in which true
/// excludes a key from attention, or a floating-point tensor that is added to the attention scores.
/// An undefined mask has no effect.
struct AttentionArgs {                  // in Python's order
  torch::Tensor key_padding_mask = {};  ///< `(N, S)`, or `(S)` for unbatched inputs
  bool need_weights = true;             ///< whether to return the attention weights; false is
                                        ///< faster
  torch::Tensor attn_mask = {};         ///< `(L, S)` or `(N * num_heads, L, S)`
  bool average_attn_weights = true;     ///< whether to average the weights over heads
  /// Hint that `attn_mask` is the causal mask. The mask is required even if this hint is set. If
  /// neither `need_weights` nor `key_padding_mask` is set, this hint selects a faster kernel that
  /// does not read the mask.
  bool is_causal = false;
};

/// As in Python, `DataParallel` splits both masks along the first dimension.
template <>
struct TensorTree<AttentionArgs>
    : TensorMembers<&AttentionArgs::key_padding_mask, &AttentionArgs::attn_mask> {};

/// A multi-head attention layer. Unlike LibTorch's layer, this layer supports `batch_first` and can
/// be trained in bfloat16 and float16, with masks, and under autocast. The layer uses the same
/// operations as Python's training path: matrix products and softmax if `need_weights` is set, and
/// `scaled_dot_product_attention` otherwise.
/// Python: `torch.nn.MultiheadAttention`.
class MultiheadAttentionImpl : public torch::nn::Cloneable<MultiheadAttentionImpl> {
 public:
  /// Constructs a layer from `options_`. Draws the same random numbers as Python.
  /// @throw c10::Error if:
  /// - `embed_dim`, `num_heads`, `kdim`, or `vdim` is below 1;
  /// - `num_heads` does not divide `embed_dim`, or `dropout` is not between 0 and 1.
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options_) : options(options_) {
    reset();
  }
  /// Constructs a layer from `embed_dim` and `num_heads`, with all other options at their defaults.
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}

  void reset() override;

  /// Prints the text that `sconce::repr` returns.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Computes attention for `query` of shape `(L, N, E)`, `key` of shape `(S, N, kdim)`, and
  /// `value` of shape `(S, N, vdim)`. If `batch_first` is set, N is the first dimension. Unbatched
  /// inputs omit N. Returns the output, which has the same shape as `query`, and the attention
  /// weights. If `need_weights` is set, the weights have shape `(N, L, S)`, or `(N, num_heads, L,
  /// S)` if they are not averaged. Otherwise, the weights are undefined. Does not read tensor
  /// values on the host. All checks run before any computation starts.
  /// @throw c10::Error if:
  /// - a shape, or the type or device of a mask, does not match;
  /// - `is_causal` is set without an `attn_mask`, or an input is a nested tensor.
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& query,
                                                   const torch::Tensor& key,
                                                   const torch::Tensor& value,
                                                   const AttentionArgs& args = {});

  /// Throws the same errors as `forward`, with `who` as the function name. Does not read tensor
  /// values.
  void check(const char* who, const torch::Tensor& query, const torch::Tensor& key,
             const torch::Tensor& value, const AttentionArgs& args) const;

  MultiheadAttentionOptions options;  ///< options of the layer
  torch::Tensor in_proj_weight;  ///< `(3 * E, E)`; undefined if `kdim` or `vdim` is not `embed_dim`
  torch::Tensor q_proj_weight;   ///< `(E, E)`; undefined if `in_proj_weight` is defined
  torch::Tensor k_proj_weight;   ///< `(E, kdim)`; undefined if `in_proj_weight` is defined
  torch::Tensor v_proj_weight;   ///< `(E, vdim)`; undefined if `in_proj_weight` is defined
  torch::Tensor in_proj_bias;    ///< `(3 * E)`; undefined without `bias`
  torch::Tensor bias_k;          ///< `(1, 1, E)`; undefined without `add_bias_kv`
  torch::Tensor bias_v;          ///< `(1, 1, E)`; undefined without `add_bias_kv`
  torch::nn::Linear out_proj = nullptr;  ///< the output projection
};
/// Module holder for `MultiheadAttentionImpl`.
/// Python: `torch.nn.MultiheadAttention`.
TORCH_MODULE(MultiheadAttention);

}  // namespace sconce::nn
