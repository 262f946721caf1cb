#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <tuple>

#include "sconce/nn/tensor_tree.hpp"
#include "sconce/repr.hpp"

namespace sconce::nn {

/// Options of `MultiheadAttention`, with the names and defaults of Python's.
struct MultiheadAttentionOptions {
  /// Makes options with these two values and defaults for the others. `kdim` and `vdim` are
  /// `embed_dim`.
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}

  TORCH_ARG(int64_t, embed_dim);           ///< number of features of the queries and the output
  TORCH_ARG(int64_t, num_heads);           ///< number of heads, which divides `embed_dim`
  TORCH_ARG(double, dropout) = 0;          ///< probability that a weight is dropped in training
  TORCH_ARG(bool, bias) = true;            ///< whether the projections have a bias
  TORCH_ARG(bool, add_bias_kv) = false;    ///< whether to append a learned key and value
  TORCH_ARG(bool, add_zero_attn) = false;  ///< whether to append a key and a value of zeros
  TORCH_ARG(int64_t, kdim);                ///< number of features of the keys
  TORCH_ARG(int64_t, vdim);                ///< number of features of the values
  TORCH_ARG(bool, batch_first) = false;    ///< whether batches are `(N, L, E)`, not `(L, N, E)`
};

/// What `MultiheadAttention` takes besides its inputs. A mask is of bool, where true hides a key,
/// or of floats, which are added to the scores. Undefined masks hide nothing.
struct AttentionArgs {                  // in Python's order
  torch::Tensor key_padding_mask = {};  ///< `(N, S)`, or `(S)` for inputs without batch
  bool need_weights = true;          ///< whether to return the weights; without them it is faster
  torch::Tensor attn_mask = {};      ///< `(L, S)` or `(N * num_heads, L, S)`
  bool average_attn_weights = true;  ///< whether the weights are the mean over the heads
  /// Hint that `attn_mask` is the causal mask, which must be given too. Without `need_weights` and
  /// `key_padding_mask`, a faster kernel then runs, and the mask is not read.
  bool is_causal = false;
};

/// `DataParallel` splits both masks along their first dimension, as Python's does.
template <>
struct TensorTree<AttentionArgs>
    : TensorMembers<&AttentionArgs::key_padding_mask, &AttentionArgs::attn_mask> {};

/// Attention with several heads. Unlike LibTorch's, it takes `batch_first` and trains in bfloat16
/// and float16, with masks and under autocast. It computes what Python's training path does: by
/// matrix products and softmax with `need_weights`, by `scaled_dot_product_attention` without.
/// Python: `torch.nn.MultiheadAttention`.
class MultiheadAttentionImpl : public torch::nn::Cloneable<MultiheadAttentionImpl> {
 public:
  /// Makes a layer with these options. Draws the numbers that Python draws.
  /// @throw c10::Error if `embed_dim` or `num_heads` is below 1, `num_heads` does not divide
  /// `embed_dim`, `kdim` or `vdim` is below 1, or `dropout` is not between 0 and 1.
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options_) : options(options_) {
    reset();
  }
  /// Makes a layer with default options.
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}

  void reset() override;

  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Takes queries `(L, N, E)`, keys `(S, N, kdim)` and values `(S, N, vdim)`; with `batch_first` N
  /// comes first; without a batch N is missing. Returns the output, of the shape of the queries,
  /// and the weights: `(N, L, S)`, or `(N, num_heads, L, S)` if they are not averaged; undefined
  /// without `need_weights`. Reads nothing on the host.
  /// @throw c10::Error if a shape, or the type or device of a mask, does not fit, if `is_causal`
  /// comes without an `attn_mask`, or if an input is nested. No work was done then.
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& query,
                                                   const torch::Tensor& key,
                                                   const torch::Tensor& value,
                                                   const AttentionArgs& args = {});

  /// Throws what `forward` would throw, as an error of `who`. Looks at no value of a tensor.
  void check(const char* who, const torch::Tensor& query, const torch::Tensor& key,
             const torch::Tensor& value, const AttentionArgs& args) const;

  MultiheadAttentionOptions options;  ///< the options of the layer
  torch::Tensor in_proj_weight;  ///< `(3 * E, E)`; undefined if `kdim` or `vdim` is not `embed_dim`
  torch::Tensor q_proj_weight;   ///< `(E, E)`; undefined if `in_proj_weight` is defined
  torch::Tensor k_proj_weight;   ///< `(E, kdim)`; undefined if `in_proj_weight` is defined
  torch::Tensor v_proj_weight;   ///< `(E, vdim)`; undefined if `in_proj_weight` is defined
  torch::Tensor in_proj_bias;    ///< `(3 * E)`; undefined without `bias`
  torch::Tensor bias_k;          ///< `(1, 1, E)`; undefined without `add_bias_kv`
  torch::Tensor bias_v;          ///< `(1, 1, E)`; undefined without `add_bias_kv`
  torch::nn::Linear out_proj = nullptr;  ///< the projection of the output
};
/// Module holder of `MultiheadAttentionImpl`. Python: `torch.nn.MultiheadAttention`.
TORCH_MODULE(MultiheadAttention);

}  // namespace sconce::nn
