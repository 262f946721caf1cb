#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include "sconce/nn/transformer_layer.hpp"

namespace sconce::nn {

/// Options of a stack of equal transformer layers.
template <class Layer>
struct TransformerStackOptions {
  /// Makes options for so many copies of the layer, without a norm.
  TransformerStackOptions(Layer layer, int64_t num_layers)
      : layer_(std::move(layer)), num_layers_(num_layers) {}

  TORCH_ARG(Layer, layer);                     ///< the layer that is copied, with its weights
  TORCH_ARG(int64_t, num_layers);              ///< number of layers
  TORCH_ARG(torch::nn::AnyModule, norm) = {};  ///< applied to the output of the last layer, if any
};
/// Options of `TransformerEncoder`.
using TransformerEncoderOptions = TransformerStackOptions<TransformerEncoderLayer>;
/// Options of `TransformerDecoder`.
using TransformerDecoderOptions = TransformerStackOptions<TransformerDecoderLayer>;

/// What both stacks have.
template <class Derived, class Layer>
class TransformerStack : public torch::nn::Cloneable<Derived> {
 public:
  void reset() override;

  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override;

  TransformerStackOptions<Layer> options;  ///< the options of the stack
  torch::nn::ModuleList layers = nullptr;  ///< the layers
  torch::nn::AnyModule norm = {};          ///< a copy of the norm of the options; empty without one

 protected:
  explicit TransformerStack(TransformerStackOptions<Layer> options);
  /// Returns the first layer.
  typename Layer::ContainedType& first();
};

/// A stack of encoder layers. All layers begin with the weights of the one that is given, as in
/// Python. Python: `torch.nn.TransformerEncoder`.
class TransformerEncoderImpl
    : public TransformerStack<TransformerEncoderImpl, TransformerEncoderLayer> {
 public:
  /// Makes a stack of copies of a layer. Draws no random numbers.
  /// @throw c10::Error if `num_layers` is below 1 or the layer is empty.
  explicit TransformerEncoderImpl(TransformerEncoderOptions options);
  /// Makes a stack without a norm.
  TransformerEncoderImpl(TransformerEncoderLayer layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(std::move(layer), num_layers)) {}

  /// Takes and returns the shapes of `TransformerEncoderLayerImpl::forward`.
  /// @throw c10::Error as `MultiheadAttentionImpl::forward`, before any work.
  torch::Tensor forward(const torch::Tensor& src, const EncoderArgs& args = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderArgs())})
};
/// Module holder of `TransformerEncoderImpl`. Python: `torch.nn.TransformerEncoder`.
TORCH_MODULE(TransformerEncoder);

/// A stack of decoder layers. All layers begin with the weights of the one that is given, as in
/// Python. Python: `torch.nn.TransformerDecoder`.
class TransformerDecoderImpl
    : public TransformerStack<TransformerDecoderImpl, TransformerDecoderLayer> {
 public:
  /// Makes a stack of copies of a layer. Draws no random numbers.
  /// @throw c10::Error if `num_layers` is below 1 or the layer is empty.
  explicit TransformerDecoderImpl(TransformerDecoderOptions options);
  /// Makes a stack without a norm.
  TransformerDecoderImpl(TransformerDecoderLayer layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(std::move(layer), num_layers)) {}

  /// Takes and returns the shapes of `TransformerDecoderLayerImpl::forward`.
  /// @throw c10::Error as `MultiheadAttentionImpl::forward`, before any work.
  torch::Tensor forward(const torch::Tensor& tgt, const torch::Tensor& memory,
                        const DecoderArgs& args = {});

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(DecoderArgs())})
};
/// Module holder of `TransformerDecoderImpl`. Python: `torch.nn.TransformerDecoder`.
TORCH_MODULE(TransformerDecoder);

}  // namespace sconce::nn
