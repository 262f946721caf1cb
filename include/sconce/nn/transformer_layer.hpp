#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/options/transformerlayer.h>

#include <optional>
#include <string>

#include "sconce/nn/layer_norm.hpp"
#include "sconce/nn/multihead_attention.hpp"

namespace sconce::nn {

/// Options of the transformer layers, with the names and defaults of Python's.
struct TransformerLayerOptions {
  /// Makes options with these two values and defaults for the others.
  TransformerLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}

  TORCH_ARG(int64_t, d_model);                 ///< number of features
  TORCH_ARG(int64_t, nhead);                   ///< number of heads, which divides `d_model`
  TORCH_ARG(int64_t, dim_feedforward) = 2048;  ///< number of features between the linear layers
  TORCH_ARG(double, dropout) = 0.1;            ///< probability of all dropouts
  /// `torch::kReLU`, `torch::kGELU` or a function of a tensor, applied between the linear layers.
  TORCH_ARG(torch::nn::activation_t, activation) = torch::kReLU;
  TORCH_ARG(double, layer_norm_eps) = 1e-5;  ///< `eps` of the norms
  TORCH_ARG(bool, batch_first) = false;      ///< whether batches are `(N, L, E)`, not `(L, N, E)`
  TORCH_ARG(bool, norm_first) = false;       ///< whether each part begins with its norm
  TORCH_ARG(bool, bias) = true;              ///< whether the layers learn a bias
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;  ///< of `TransformerEncoderLayer`
using TransformerDecoderLayerOptions = TransformerLayerOptions;  ///< of `TransformerDecoderLayer`

/// What an encoder, or a layer of one, takes besides its input. Its masks are like those of
/// `AttentionArgs`.
struct EncoderArgs {
  torch::Tensor src_mask =
      {};  ///< `(L, L)` or `(N * nhead, L, L)`; Python's encoder calls it `mask`
  torch::Tensor src_key_padding_mask = {};  ///< `(N, L)`, or `(L)` for an input without batch
  /// Hint that `src_mask` is the causal mask; see `AttentionArgs::is_causal`. If it is not given,
  /// `TransformerEncoder` compares a mask on the CPU with the causal one. For a mask on a GPU it
  /// does not, because that would wait for the GPU.
  std::optional<bool> is_causal = {};
};

/// What a decoder, or a layer of one, takes besides its inputs. Its masks are like those of
/// `AttentionArgs`.
struct DecoderArgs {
  torch::Tensor tgt_mask = {};                 ///< `(L, L)` or `(N * nhead, L, L)`
  torch::Tensor memory_mask = {};              ///< `(L, S)` or `(N * nhead, L, S)`
  torch::Tensor tgt_key_padding_mask = {};     ///< `(N, L)`, or `(L)` for inputs without batch
  torch::Tensor memory_key_padding_mask = {};  ///< `(N, S)`, or `(S)` for inputs without batch
  std::optional<bool> tgt_is_causal = {};  ///< hint about `tgt_mask`, as `EncoderArgs::is_causal`
  bool memory_is_causal = false;           ///< hint that `memory_mask` is the causal mask
};

/// `DataParallel` splits both masks along their first dimension, as Python's does.
template <>
struct NestedTensors<EncoderArgs>
    : TensorMembers<&EncoderArgs::src_mask, &EncoderArgs::src_key_padding_mask> {};
/// `DataParallel` splits all masks along their first dimension, as Python's does.
template <>
struct NestedTensors<DecoderArgs>
    : TensorMembers<&DecoderArgs::tgt_mask, &DecoderArgs::memory_mask,
                    &DecoderArgs::tgt_key_padding_mask, &DecoderArgs::memory_key_padding_mask> {};

/// What both kinds of transformer layers have.
template <class Derived>
class TransformerLayer : public torch::nn::Cloneable<Derived> {
 public:
  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override;

  TransformerLayerOptions options;         ///< the options of the layer
  MultiheadAttention self_attn = nullptr;  ///< the attention of the input to itself
  torch::nn::Linear linear1 = nullptr;     ///< `d_model` to `dim_feedforward` features
  torch::nn::Dropout dropout = nullptr;    ///< after the activation
  torch::nn::Linear linear2 = nullptr;     ///< `dim_feedforward` to `d_model` features
  LayerNorm norm1 = nullptr;               ///< of the self-attention
  LayerNorm norm2 = nullptr;               ///< of the next part
  torch::nn::Dropout dropout1 = nullptr;   ///< after the self-attention
  torch::nn::Dropout dropout2 = nullptr;   ///< after the next part

 protected:
  explicit TransformerLayer(TransformerLayerOptions options);
  MultiheadAttention add_attention(const std::string& name);
  void add_linears();
  LayerNorm add_norm(const std::string& name);
  torch::nn::Dropout add_dropout(const std::string& name);
  torch::Tensor feed_forward(const torch::Tensor& x);
};

/// Self-attention, then two linear layers with an activation between them. Each of the two parts
/// has a dropout, a sum with its input and a norm. Unlike LibTorch's, it trains in bfloat16 and
/// float16, with masks and under autocast. Python: `torch.nn.TransformerEncoderLayer`.
class TransformerEncoderLayerImpl : public TransformerLayer<TransformerEncoderLayerImpl> {
 public:
  /// Makes a layer with these options. Draws the numbers that Python draws.
  /// @throw c10::Error if `nhead` does not divide `d_model`, a size is below 1, `dropout` is not
  /// between 0 and 1, or the activation is an empty function.
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options);
  /// Makes a layer with default options.
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}

  void reset() override;

  /// Takes and returns `(L, N, E)`, `(N, L, E)` with `batch_first`, or `(L, E)` without a batch, on
  /// any device. Reads nothing on the host.
  /// @throw c10::Error as `MultiheadAttentionImpl::forward`, before any work.
  torch::Tensor forward(const torch::Tensor& src, const EncoderArgs& args = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderArgs())})
};
/// Module holder of `TransformerEncoderLayerImpl`. Python: `torch.nn.TransformerEncoderLayer`.
TORCH_MODULE(TransformerEncoderLayer);

/// Self-attention, then attention to the output of an encoder, then two linear layers. Otherwise
/// like `TransformerEncoderLayer`. Python: `torch.nn.TransformerDecoderLayer`.
class TransformerDecoderLayerImpl : public TransformerLayer<TransformerDecoderLayerImpl> {
 public:
  /// Makes a layer with these options. Draws the numbers that Python draws.
  /// @throw c10::Error as the constructor of `TransformerEncoderLayerImpl`.
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options);
  /// Makes a layer with default options.
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}

  void reset() override;

  /// Takes `tgt` `(L, N, E)` and `memory` `(S, N, E)`, with N first if `batch_first`, and without N
  /// if there is no batch. Returns the shape of `tgt`. Reads nothing on the host.
  /// @throw c10::Error as `MultiheadAttentionImpl::forward`, before any work.
  torch::Tensor forward(const torch::Tensor& tgt, const torch::Tensor& memory,
                        const DecoderArgs& args = {});

  MultiheadAttention multihead_attn = nullptr;  ///< the attention to `memory`
  LayerNorm norm3 = nullptr;                    ///< of the linear layers
  torch::nn::Dropout dropout3 = nullptr;        ///< after the linear layers

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(DecoderArgs())})
};
/// Module holder of `TransformerDecoderLayerImpl`. Python: `torch.nn.TransformerDecoderLayer`.
TORCH_MODULE(TransformerDecoderLayer);

}  // namespace sconce::nn
