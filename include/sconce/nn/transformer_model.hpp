#pragma once

#include <torch/nn/modules/container/any.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "sconce/nn/transformer.hpp"

namespace sconce::nn {

/// Options for `Transformer`, with the same names and defaults as in Python.
struct TransformerOptions {
  /// Sets `d_model` and `nhead` and leaves all other options at their defaults.
  TransformerOptions(int64_t d_model = 512, int64_t nhead = 8) : d_model_(d_model), nhead_(nhead) {}

  TORCH_ARG(int64_t, d_model);                 ///< number of features
  TORCH_ARG(int64_t, nhead);                   ///< number of heads; must divide `d_model`
  TORCH_ARG(int64_t, num_encoder_layers) = 6;  ///< number of encoder layers
  TORCH_ARG(int64_t, num_decoder_layers) = 6;  ///< number of decoder layers
  TORCH_ARG(int64_t, dim_feedforward) = 2048;  ///< number of features between the linear layers
  TORCH_ARG(double, dropout) = 0.1;            ///< dropout probability for all dropout layers
  /// Activation between the linear layers: `torch::kReLU`, `torch::kGELU`, or a function that maps
  /// a tensor to a tensor.
  TORCH_ARG(torch::nn::activation_t, activation) = torch::kReLU;
  /// Custom encoder with a `forward` that matches `TransformerEncoderImpl::forward`. By default,
  /// the model creates a `TransformerEncoder`.
  TORCH_ARG(torch::nn::AnyModule, custom_encoder);
  /// Custom decoder with a `forward` that matches `TransformerDecoderImpl::forward`. By default,
  /// the model creates a `TransformerDecoder`.
  TORCH_ARG(torch::nn::AnyModule, custom_decoder);
  TORCH_ARG(double, layer_norm_eps) = 1e-5;  ///< `eps` of the normalization layers
  TORCH_ARG(bool, batch_first) = false;      ///< whether batches are `(N, L, E)` instead of
                                             ///< `(L, N, E)`
  TORCH_ARG(bool, norm_first) = false;       ///< whether to normalize before each block
  TORCH_ARG(bool, bias) = true;              ///< whether layers learn an additive bias
};

/// Optional arguments for `Transformer`, in Python's order. Masks follow the same rules as in
/// `AttentionArgs`, and hints work as in `EncoderArgs` and `DecoderArgs`.
struct TransformerArgs {
  torch::Tensor src_mask = {};                 ///< `(S, S)` or `(N * nhead, S, S)`
  torch::Tensor tgt_mask = {};                 ///< `(T, T)` or `(N * nhead, T, T)`
  torch::Tensor memory_mask = {};              ///< `(T, S)` or `(N * nhead, T, S)`
  torch::Tensor src_key_padding_mask = {};     ///< `(N, S)`, or `(S)` for unbatched inputs
  torch::Tensor tgt_key_padding_mask = {};     ///< `(N, T)`, or `(T)` for unbatched inputs
  torch::Tensor memory_key_padding_mask = {};  ///< `(N, S)`, or `(S)` for unbatched inputs
  std::optional<bool> src_is_causal = {};      ///< hint that `src_mask` is the causal mask
  std::optional<bool> tgt_is_causal = {};      ///< hint that `tgt_mask` is the causal mask
  bool memory_is_causal = false;               ///< hint that `memory_mask` is the causal mask
};

/// As in Python, `DataParallel` splits all masks along the first dimension.
template <>
struct TensorTree<TransformerArgs>
    : TensorMembers<&TransformerArgs::src_mask, &TransformerArgs::tgt_mask,
                    &TransformerArgs::memory_mask, &TransformerArgs::src_key_padding_mask,
                    &TransformerArgs::tgt_key_padding_mask,
                    &TransformerArgs::memory_key_padding_mask> {};

/// A transformer model with an encoder for the source and a decoder for the target. The decoder
/// attends to the encoder's output. Both the encoder and the decoder end with layer normalization.
/// Unlike LibTorch's module, the model can be trained in bfloat16 and float16, with masks, and
/// under autocast.
/// Python: `torch.nn.Transformer`.
class TransformerImpl : public torch::nn::Cloneable<TransformerImpl> {
 public:
  /// Constructs a model from `options_`. Draws the same random numbers as Python. As in Python, a
  /// custom encoder or decoder is not copied, and its parameters with two or more dimensions are
  /// reinitialized.
  /// @throw c10::Error if the number of encoder or decoder layers is below 1.
  /// @throw c10::Error in the same cases as the constructor of `TransformerEncoderLayerImpl`.
  explicit TransformerImpl(TransformerOptions options_ = {}) : options(std::move(options_)) {
    reset();
  }
  /// Constructs a model from `d_model` and `nhead`, with all other options at their defaults.
  TransformerImpl(int64_t d_model, int64_t nhead)
      : TransformerImpl(TransformerOptions(d_model, nhead)) {}

  void reset() override;

  /// Reinitializes all parameters with two or more dimensions.
  void reset_parameters();

  /// Prints the text that `sconce::repr` returns.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Passes `src` of shape `(S, N, E)` and `tgt` of shape `(T, N, E)` through the model. If
  /// `batch_first` is set, N is the first dimension. Unbatched inputs omit N. The output has the
  /// same shape as `tgt`. Does not read tensor values on the host, except to compare a CPU mask
  /// with the causal mask.
  /// @throw c10::Error if the batch sizes differ or the inputs do not have `d_model` features.
  /// @throw c10::Error in the same cases as `MultiheadAttentionImpl::forward`.
  torch::Tensor forward(const torch::Tensor& src, const torch::Tensor& tgt,
                        const TransformerArgs& args = {});

  /// Returns a causal mask of shape `(sz, sz)`, with -inf above the diagonal and 0 elsewhere. The
  /// mask has the default type unless `of` specifies a different type.
  static torch::Tensor generate_square_subsequent_mask(int64_t sz,
                                                       const torch::TensorOptions& of = {});

  TransformerOptions options;    ///< options of the model
  torch::nn::AnyModule encoder;  ///< a `TransformerEncoder` or the custom encoder
  torch::nn::AnyModule decoder;  ///< a `TransformerDecoder` or the custom decoder

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(TransformerArgs())})
};
/// Module holder for `TransformerImpl`. Python: `torch.nn.Transformer`.
TORCH_MODULE(Transformer);

}  // namespace sconce::nn
