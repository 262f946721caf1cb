#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <utility>
#include <vector>

#include "sconce/repr.hpp"

namespace sconce::nn {

/// Options of `LayerNorm`: those of LibTorch's, and `bias`.
struct LayerNormOptions {
  /// Makes options for the last dimension of the input, of this size.
  LayerNormOptions(int64_t size) : normalized_shape_({size}) {}
  /// Makes options for the last dimensions of the input, of these sizes.
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}

  TORCH_ARG(std::vector<int64_t>, normalized_shape);  ///< sizes of the last dimensions of the input
  TORCH_ARG(double, eps) = 1e-5;                      ///< number added to the variance
  TORCH_ARG(bool, elementwise_affine) = true;         ///< whether to learn a weight
  TORCH_ARG(bool,
            bias) = true;  ///< whether to learn a bias too; LibTorch's layer lacks this option
};

/// Normalizes over the last dimensions. Takes `(*, normalized_shape)`, on any device, and returns
/// the same shape. Python: `torch.nn.LayerNorm`.
class LayerNormImpl : public torch::nn::Cloneable<LayerNormImpl> {
 public:
  /// Makes a layer with these options. Draws no random numbers.
  explicit LayerNormImpl(LayerNormOptions options_) : options(std::move(options_)) { reset(); }

  void reset() override {
    if (!options.elementwise_affine()) return;
    weight = register_parameter("weight", torch::ones(options.normalized_shape()));
    if (options.bias()) bias = register_parameter("bias", torch::zeros(options.normalized_shape()));
  }

  /// Prints the text of `repr`.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// @throw c10::Error if the last dimensions of the input are not `normalized_shape`.
  torch::Tensor forward(const torch::Tensor& input) {
    return torch::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
  }

  LayerNormOptions options;  ///< the options of the layer
  torch::Tensor weight;      ///< shape `normalized_shape`; undefined without `elementwise_affine`
  torch::Tensor bias;        ///< shape `normalized_shape`; undefined without `bias` or weight
};
/// Module holder of `LayerNormImpl`. Python: `torch.nn.LayerNorm`.
TORCH_MODULE(LayerNorm);

}  // namespace sconce::nn
