#pragma once

#include <torch/nn/modules/container/any.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "sconce/nn/transformer.hpp"

namespace sconce::nn {

/// Options of `Transformer`, with the names and defaults of Python's.
struct TransformerOptions {
  /// Makes options with these two values and defaults for the others.
  TransformerOptions(int64_t d_model = 512, int64_t nhead = 8) : d_model_(d_model), nhead_(nhead) {}

  TORCH_ARG(int64_t, d_model);                 ///< number of features
  TORCH_ARG(int64_t, nhead);                   ///< number of heads, which divides `d_model`
  TORCH_ARG(int64_t, num_encoder_layers) = 6;  ///< number of layers of the encoder
  TORCH_ARG(int64_t, num_decoder_layers) = 6;  ///< number of layers of the decoder
  TORCH_ARG(int64_t, dim_feedforward) = 2048;  ///< number of features between the linear layers
  TORCH_ARG(double, dropout) = 0.1;            ///< probability of all dropouts
  /// `torch::kReLU`, `torch::kGELU` or a function of a tensor, applied between the linear layers.
  TORCH_ARG(torch::nn::activation_t, activation) = torch::kReLU;
  /// A module with the `forward` of `TransformerEncoderImpl`; empty: a `TransformerEncoder`.
  TORCH_ARG(torch::nn::AnyModule, custom_encoder);
  /// A module with the `forward` of `TransformerDecoderImpl`; empty: a `TransformerDecoder`.
  TORCH_ARG(torch::nn::AnyModule, custom_decoder);
  TORCH_ARG(double, layer_norm_eps) = 1e-5;  ///< `eps` of the norms
  TORCH_ARG(bool, batch_first) = false;      ///< whether batches are `(N, L, E)`, not `(L, N, E)`
  TORCH_ARG(bool, norm_first) = false;       ///< whether each part begins with its norm
  TORCH_ARG(bool, bias) = true;              ///< whether the layers learn a bias
};

/// What `Transformer` takes besides its inputs, in Python's order. Its masks are like those of
/// `AttentionArgs`, and its hints like those of `EncoderArgs` and `DecoderArgs`.
struct TransformerArgs {
  torch::Tensor src_mask = {};                 ///< `(S, S)` or `(N * nhead, S, S)`
  torch::Tensor tgt_mask = {};                 ///< `(T, T)` or `(N * nhead, T, T)`
  torch::Tensor memory_mask = {};              ///< `(T, S)` or `(N * nhead, T, S)`
  torch::Tensor src_key_padding_mask = {};     ///< `(N, S)`, or `(S)` for inputs without batch
  torch::Tensor tgt_key_padding_mask = {};     ///< `(N, T)`, or `(T)` for inputs without batch
  torch::Tensor memory_key_padding_mask = {};  ///< `(N, S)`, or `(S)` for inputs without batch
  std::optional<bool> src_is_causal = {};      ///< hint that `src_mask` is the causal mask
  std::optional<bool> tgt_is_causal = {};      ///< hint that `tgt_mask` is the causal mask
  bool memory_is_causal = false;               ///< hint that `memory_mask` is the causal mask
};

/// `DataParallel` splits all masks along their first dimension, as Python's does.
template <>
struct TensorTree<TransformerArgs>
    : TensorMembers<&TransformerArgs::src_mask, &TransformerArgs::tgt_mask,
                    &TransformerArgs::memory_mask, &TransformerArgs::src_key_padding_mask,
                    &TransformerArgs::tgt_key_padding_mask,
                    &TransformerArgs::memory_key_padding_mask> {};

/// An encoder of a source, and a decoder of a target that attends to the encoder's output. Each
/// ends with a norm. Unlike LibTorch's, it trains in bfloat16 and float16, with masks and under
/// autocast. Python: `torch.nn.Transformer`.
class TransformerImpl : public torch::nn::Cloneable<TransformerImpl> {
 public:
  /// Makes a model with these options, and draws the numbers that Python draws. As in Python, a
  /// custom encoder or decoder is not copied, and its parameters of two or more dimensions get new
  /// values.
  /// @throw c10::Error if a number of layers is below 1, or as the constructor of
  /// `TransformerEncoderLayerImpl`.
  explicit TransformerImpl(TransformerOptions options_ = {}) : options(std::move(options_)) {
    reset();
  }
  /// The same with the defaults of the other options.
  TransformerImpl(int64_t d_model, int64_t nhead)
      : TransformerImpl(TransformerOptions(d_model, nhead)) {}

  void reset() override;

  /// Draws new values of all parameters of two or more dimensions.
  void reset_parameters();

  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Takes `src` `(S, N, E)` and `tgt` `(T, N, E)`, with N first if `batch_first`, and without N if
  /// there is no batch. Returns the shape of `tgt`. Reads nothing on the host, unless a mask on the
  /// CPU is compared with the causal one.
  /// @throw c10::Error if the numbers of rows of a batch differ, if the inputs have not `d_model`
  /// features, or as `MultiheadAttentionImpl::forward`.
  torch::Tensor forward(const torch::Tensor& src, const torch::Tensor& tgt,
                        const TransformerArgs& args = {});

  /// Returns the causal mask `(sz, sz)`, which is -inf above the diagonal and 0 elsewhere. The type
  /// is the default one unless the options name another.
  static torch::Tensor generate_square_subsequent_mask(int64_t sz,
                                                       const torch::TensorOptions& of = {});

  TransformerOptions options;    ///< the options of the model
  torch::nn::AnyModule encoder;  ///< a `TransformerEncoder`, or the custom one
  torch::nn::AnyModule decoder;  ///< a `TransformerDecoder`, or the custom one

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(TransformerArgs())})
};
/// Module holder of `TransformerImpl`. Python: `torch.nn.Transformer`.
TORCH_MODULE(Transformer);

}  // namespace sconce::nn
