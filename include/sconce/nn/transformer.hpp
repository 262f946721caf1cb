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
struct TensorTree<EncoderArgs>
    : TensorMembers<&EncoderArgs::src_mask, &EncoderArgs::src_key_padding_mask> {};
/// `DataParallel` splits all masks along their first dimension, as Python's does.
template <>
struct TensorTree<DecoderArgs>
    : TensorMembers<&DecoderArgs::tgt_mask, &DecoderArgs::memory_mask,
                    &DecoderArgs::tgt_key_padding_mask, &DecoderArgs::memory_key_padding_mask> {};

/// The parts that both kinds of transformer layers have.
struct TransformerParts {
  TransformerLayerOptions options;         ///< the options of the layer
  MultiheadAttention self_attn = nullptr;  ///< the attention of the input to itself
  torch::nn::Linear linear1 = nullptr;     ///< `d_model` to `dim_feedforward` features
  torch::nn::Dropout dropout = nullptr;    ///< after the activation
  torch::nn::Linear linear2 = nullptr;     ///< `dim_feedforward` to `d_model` features
  LayerNorm norm1 = nullptr;               ///< of the self-attention
  LayerNorm norm2 = nullptr;               ///< of the next part
  torch::nn::Dropout dropout1 = nullptr;   ///< after the self-attention
  torch::nn::Dropout dropout2 = nullptr;   ///< after the next part
};

/// Self-attention, then two linear layers with an activation between them. Each of the two parts
/// has a dropout, a sum with its input and a norm. Unlike LibTorch's, it trains in bfloat16 and
/// float16, with masks and under autocast. Python: `torch.nn.TransformerEncoderLayer`.
class TransformerEncoderLayerImpl : public torch::nn::Cloneable<TransformerEncoderLayerImpl>,
                                    public TransformerParts {
 public:
  /// Makes a layer with these options. Draws the numbers that Python draws.
  /// @throw c10::Error if `nhead` does not divide `d_model`, `dim_feedforward` is below 1,
  /// `dropout` is not between 0 and 1, or the activation is an empty function.
  explicit TransformerEncoderLayerImpl(TransformerLayerOptions options_)
      : TransformerParts{std::move(options_)} {
    reset();
  }
  /// The same with the defaults of the other options.
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerLayerOptions(d_model, nhead)) {}

  void reset() override;

  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

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
class TransformerDecoderLayerImpl : public torch::nn::Cloneable<TransformerDecoderLayerImpl>,
                                    public TransformerParts {
 public:
  /// Makes a layer with these options. Draws the numbers that Python draws.
  /// @throw c10::Error as the constructor of `TransformerEncoderLayerImpl`.
  explicit TransformerDecoderLayerImpl(TransformerLayerOptions options_)
      : TransformerParts{std::move(options_)} {
    reset();
  }
  /// The same with the defaults of the other options.
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerLayerOptions(d_model, nhead)) {}

  void reset() override;

  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Takes `tgt` `(L, N, E)` and `memory` `(S, N, E)`, with N first if `batch_first`, and without N
  /// if there is no batch. Returns the shape of `tgt`. Reads nothing on the host.
  /// @throw c10::Error as `MultiheadAttentionImpl::forward`, before any work.
  torch::Tensor forward(const torch::Tensor& tgt, const torch::Tensor& memory,
                        const DecoderArgs& args = {});

  MultiheadAttention multihead_attn = nullptr;  ///< the attention to `memory`
  LayerNorm norm3 = nullptr;                    ///< of the linear layers
  torch::nn::Dropout dropout3 = nullptr;        ///< after the linear layers
};
/// Module holder of `TransformerDecoderLayerImpl`. Python: `torch.nn.TransformerDecoderLayer`.
TORCH_MODULE(TransformerDecoderLayer);

/// A stack of copies of one layer, and a norm. All layers begin with the same weights, as in
/// Python.
template <class Derived, class Layer>
class TransformerStack : public torch::nn::Cloneable<Derived> {
 public:
  /// Makes a stack of copies of the layer and of the norm, if there is one. Draws no random
  /// numbers.
  /// @throw c10::Error if `num_layers` is below 1 or the holder of the layer is empty.
  TransformerStack(Layer layer, int64_t num_layers, torch::nn::AnyModule last_norm = {})
      : norm(std::move(last_norm)), layer_(std::move(layer)), num_layers_(num_layers) {
    reset();
  }

  void reset() override;

  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  torch::nn::ModuleList layers = nullptr;  ///< the layers
  torch::nn::AnyModule norm;               ///< applied to the output of the last layer; or empty

 private:
  Layer layer_;
  int64_t num_layers_;
};

/// A stack of encoder layers: `TransformerEncoder(layer, 6)`, or with a norm
/// `TransformerEncoder(layer, 6, torch::nn::AnyModule(LayerNorm(512)))`.
/// Python: `torch.nn.TransformerEncoder`.
class TransformerEncoderImpl
    : public TransformerStack<TransformerEncoderImpl, TransformerEncoderLayer> {
 public:
  using TransformerStack::TransformerStack;

  /// Takes and returns the shapes of `TransformerEncoderLayerImpl::forward`.
  /// @throw c10::Error as `MultiheadAttentionImpl::forward`, before any work.
  torch::Tensor forward(const torch::Tensor& src, const EncoderArgs& args = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderArgs())})
};
/// Module holder of `TransformerEncoderImpl`. Python: `torch.nn.TransformerEncoder`.
TORCH_MODULE(TransformerEncoder);

/// A stack of decoder layers, made like `TransformerEncoder`.
/// Python: `torch.nn.TransformerDecoder`.
class TransformerDecoderImpl
    : public TransformerStack<TransformerDecoderImpl, TransformerDecoderLayer> {
 public:
  using TransformerStack::TransformerStack;

  /// Takes and returns the shapes of `TransformerDecoderLayerImpl::forward`.
  /// @throw c10::Error as `MultiheadAttentionImpl::forward`, before any work.
  torch::Tensor forward(const torch::Tensor& tgt, const torch::Tensor& memory,
                        const DecoderArgs& args = {});
};
/// Module holder of `TransformerDecoderImpl`. Python: `torch.nn.TransformerDecoder`.
TORCH_MODULE(TransformerDecoder);

}  // namespace sconce::nn
