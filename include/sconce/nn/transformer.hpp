#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/options/transformerlayer.h>

#include <utility>

#include "sconce/nn/layer_norm.hpp"
#include "sconce/nn/multihead_attention.hpp"

namespace sconce::nn {

/// Options for the transformer layers, with the same names and defaults as in Python.
struct TransformerLayerOptions {
  /// Sets `d_model` and `nhead` and leaves all other options at their defaults.
  TransformerLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}

  TORCH_ARG(int64_t, d_model);                 ///< number of features
  TORCH_ARG(int64_t, nhead);                   ///< number of heads; must divide `d_model`
  TORCH_ARG(int64_t, dim_feedforward) = 2048;  ///< number of features between the linear layers
  TORCH_ARG(double, dropout) = 0.1;            ///< dropout probability for all dropout layers
  /// Activation between the linear layers: `torch::kReLU`, `torch::kGELU`, or a function that maps
  /// a tensor to a tensor.
  TORCH_ARG(torch::nn::activation_t, activation) = torch::kReLU;
  TORCH_ARG(double, layer_norm_eps) = 1e-5;  ///< `eps` of the normalization layers
  TORCH_ARG(bool, batch_first) = false;      ///< whether batches are `(N, L, E)` instead of
                                             ///< `(L, N, E)`
  TORCH_ARG(bool, norm_first) = false;       ///< whether to normalize before each block
  TORCH_ARG(bool, bias) = true;              ///< whether layers learn an additive bias
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;  ///< for `TransformerEncoderLayer`
using TransformerDecoderLayerOptions = TransformerLayerOptions;  ///< for `TransformerDecoderLayer`

/// Optional arguments for an encoder and its layers. Masks follow the same rules as in
/// `AttentionArgs`.
struct EncoderArgs {
  torch::Tensor src_mask =
      {};  ///< `(L, L)` or `(N * nhead, L, L)`; called `mask` in Python's encoder
  torch::Tensor src_key_padding_mask = {};  ///< `(N, L)`, or `(L)` for an unbatched input
  /// Hint that `src_mask` is the causal mask, like `AttentionArgs::is_causal`. If this hint is not
  /// set, `TransformerEncoder` checks whether a CPU mask is causal. GPU masks are not checked,
  /// because the check would have to wait for the GPU.
  std::optional<bool> is_causal = {};
};

/// Optional arguments for a decoder and its layers. Masks follow the same rules as in
/// `AttentionArgs`.
struct DecoderArgs {
  torch::Tensor tgt_mask = {};                 ///< `(L, L)` or `(N * nhead, L, L)`
  torch::Tensor memory_mask = {};              ///< `(L, S)` or `(N * nhead, L, S)`
  torch::Tensor tgt_key_padding_mask = {};     ///< `(N, L)`, or `(L)` for unbatched inputs
  torch::Tensor memory_key_padding_mask = {};  ///< `(N, S)`, or `(S)` for unbatched inputs
  std::optional<bool> tgt_is_causal = {};  ///< hint for `tgt_mask`, like `EncoderArgs::is_causal`
  bool memory_is_causal = false;           ///< hint that `memory_mask` is the causal mask
};

/// As in Python, `DataParallel` splits both masks along the first dimension.
template <>
struct TensorTree<EncoderArgs>
    : TensorMembers<&EncoderArgs::src_mask, &EncoderArgs::src_key_padding_mask> {};
/// As in Python, `DataParallel` splits all masks along the first dimension.
template <>
struct TensorTree<DecoderArgs>
    : TensorMembers<&DecoderArgs::tgt_mask, &DecoderArgs::memory_mask,
                    &DecoderArgs::tgt_key_padding_mask, &DecoderArgs::memory_key_padding_mask> {};

/// Members shared by transformer encoder and decoder layers.
struct TransformerParts {
  TransformerLayerOptions options;         ///< options of the layer
  MultiheadAttention self_attn = nullptr;  ///< self-attention over the input
  torch::nn::Linear linear1 = nullptr;     ///< from `d_model` to `dim_feedforward` features
  torch::nn::Dropout dropout = nullptr;    ///< after the activation
  torch::nn::Linear linear2 = nullptr;     ///< from `dim_feedforward` to `d_model` features
  LayerNorm norm1 = nullptr;               ///< for the self-attention
  LayerNorm norm2 = nullptr;               ///< for the block that follows the self-attention
  torch::nn::Dropout dropout1 = nullptr;   ///< after the self-attention
  torch::nn::Dropout dropout2 = nullptr;   ///< after the block that follows the self-attention
};

/// A transformer encoder layer that consists of self-attention and a feed-forward block with two
/// linear layers and an activation between them. Each block has dropout, a residual connection, and
/// layer normalization. Unlike LibTorch's layer, this layer can be trained in bfloat16 and float16,
/// with masks, and under autocast.
/// Python: `torch.nn.TransformerEncoderLayer`.
class TransformerEncoderLayerImpl : public torch::nn::Cloneable<TransformerEncoderLayerImpl>,
                                    public TransformerParts {
 public:
  /// Constructs a layer from `options_`. Draws the same random numbers as Python.
  /// @throw c10::Error if `nhead` does not divide `d_model`, `dim_feedforward` is below 1,
  /// `dropout` is not between 0 and 1, or the activation is an empty function.
  explicit TransformerEncoderLayerImpl(TransformerLayerOptions options_)
      : TransformerParts{std::move(options_)} {
    reset();
  }
  /// Constructs a layer from `d_model` and `nhead`, with all other options at their defaults.
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerLayerOptions(d_model, nhead)) {}

  void reset() override;

  /// Prints the text that `sconce::repr` returns.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Passes `src` through the layer. `src` has shape `(L, N, E)`, `(N, L, E)` if `batch_first` is
  /// set, or `(L, E)` if unbatched, and may be on any device. The output has the same shape as
  /// `src`. Does not read tensor values on the host.
  /// @throw c10::Error in the same cases as `MultiheadAttentionImpl::forward`. All checks run
  /// before any computation starts.
  torch::Tensor forward(const torch::Tensor& src, const EncoderArgs& args = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderArgs())})
};
/// Module holder for `TransformerEncoderLayerImpl`.
/// Python: `torch.nn.TransformerEncoderLayer`.
TORCH_MODULE(TransformerEncoderLayer);

/// A transformer decoder layer that consists of self-attention, attention over an encoder's output,
/// and a feed-forward block with two linear layers. In all other respects, this layer works like
/// `TransformerEncoderLayer`.
/// Python: `torch.nn.TransformerDecoderLayer`.
class TransformerDecoderLayerImpl : public torch::nn::Cloneable<TransformerDecoderLayerImpl>,
                                    public TransformerParts {
 public:
  /// Constructs a layer from `options_`. Draws the same random numbers as Python.
  /// @throw c10::Error in the same cases as the constructor of `TransformerEncoderLayerImpl`.
  explicit TransformerDecoderLayerImpl(TransformerLayerOptions options_)
      : TransformerParts{std::move(options_)} {
    reset();
  }
  /// Constructs a layer from `d_model` and `nhead`, with all other options at their defaults.
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerLayerOptions(d_model, nhead)) {}

  void reset() override;

  /// Prints the text that `sconce::repr` returns.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Passes `tgt` of shape `(L, N, E)` and `memory` of shape `(S, N, E)` through the layer. If
  /// `batch_first` is set, N is the first dimension. Unbatched inputs omit N. The output has the
  /// same shape as `tgt`. Does not read tensor values on the host.
  /// @throw c10::Error in the same cases as `MultiheadAttentionImpl::forward`. All checks run
  /// before any computation starts.
  torch::Tensor forward(const torch::Tensor& tgt, const torch::Tensor& memory,
                        const DecoderArgs& args = {});

  MultiheadAttention multihead_attn = nullptr;  ///< attention over `memory`
  LayerNorm norm3 = nullptr;                    ///< for the linear layers
  torch::nn::Dropout dropout3 = nullptr;        ///< after the linear layers
};
/// Module holder for `TransformerDecoderLayerImpl`.
/// Python: `torch.nn.TransformerDecoderLayer`.
TORCH_MODULE(TransformerDecoderLayer);

/// Stacks copies of a layer and optionally appends a normalization layer. As in Python, all layers
/// start with the same weights.
template <class Derived, class Layer>
class TransformerStack : public torch::nn::Cloneable<Derived> {
 public:
  /// Constructs a stack of copies of `layer`. If `last_norm` is not empty, the stack ends with a
  /// copy of `last_norm`. Does not draw random numbers.
  /// @throw c10::Error if `num_layers` is below 1 or the holder `layer` is empty.
  TransformerStack(Layer layer, int64_t num_layers, torch::nn::AnyModule last_norm = {})
      : norm(std::move(last_norm)), layer_(std::move(layer)), num_layers_(num_layers) {
    reset();
  }

  void reset() override;

  /// Prints the text that `sconce::repr` returns.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  torch::nn::ModuleList layers = nullptr;  ///< the layers
  torch::nn::AnyModule norm;  ///< applied to the output of the last layer; may be empty

 private:
  Layer layer_;
  int64_t num_layers_;
};

/// A stack of encoder layers: `TransformerEncoder(layer, 6)`. To add a normalization layer, use
/// `TransformerEncoder(layer, 6, torch::nn::AnyModule(LayerNorm(512)))`.
/// Python: `torch.nn.TransformerEncoder`.
class TransformerEncoderImpl
    : public TransformerStack<TransformerEncoderImpl, TransformerEncoderLayer> {
 public:
  using TransformerStack::TransformerStack;

  /// Passes `src` through all layers. Shapes are the same as in
  /// `TransformerEncoderLayerImpl::forward`.
  /// @throw c10::Error in the same cases as `MultiheadAttentionImpl::forward`. All checks run
  /// before any computation starts.
  torch::Tensor forward(const torch::Tensor& src, const EncoderArgs& args = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderArgs())})
};
/// Module holder for `TransformerEncoderImpl`.
/// Python: `torch.nn.TransformerEncoder`.
TORCH_MODULE(TransformerEncoder);

/// A stack of decoder layers, constructed like `TransformerEncoder`.
/// Python: `torch.nn.TransformerDecoder`.
class TransformerDecoderImpl
    : public TransformerStack<TransformerDecoderImpl, TransformerDecoderLayer> {
 public:
  using TransformerStack::TransformerStack;

  /// Passes `tgt` through all layers. Shapes are the same as in
  /// `TransformerDecoderLayerImpl::forward`.
  /// @throw c10::Error in the same cases as `MultiheadAttentionImpl::forward`. All checks run
  /// before any computation starts.
  torch::Tensor forward(const torch::Tensor& tgt, const torch::Tensor& memory,
                        const DecoderArgs& args = {});
};
/// Module holder for `TransformerDecoderImpl`.
/// Python: `torch.nn.TransformerDecoder`.
TORCH_MODULE(TransformerDecoder);

}  // namespace sconce::nn
