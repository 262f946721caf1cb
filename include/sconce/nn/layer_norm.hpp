#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <utility>
#include <vector>

#include "sconce/repr.hpp"

namespace sconce::nn {

/// Options for `LayerNorm`: LibTorch's options plus `bias`.
struct LayerNormOptions {
  /// Constructs options for normalizing over the input's last dimension, which has size `size`.
  LayerNormOptions(int64_t size) : normalized_shape_({size}) {}
  /// Constructs options for normalizing over the input's last dimensions, which have the given
  /// sizes.
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}

  TORCH_ARG(std::vector<int64_t>, normalized_shape);  ///< sizes of the dimensions to normalize over
  TORCH_ARG(double, eps) = 1e-5;                      ///< value added to the variance for numerical
                                                      ///< stability
  TORCH_ARG(bool, elementwise_affine) = true;         ///< whether to learn a weight
  TORCH_ARG(bool,
            bias) = true;  ///< whether to also learn a bias; LibTorch's layer lacks this option
};

/// Applies layer normalization over the input's last dimensions. The input has shape `(*,
/// normalized_shape)` and may be on any device. The output has the same shape as the input.
/// Python: `torch.nn.LayerNorm`.
class LayerNormImpl : public torch::nn::Cloneable<LayerNormImpl> {
 public:
  /// Constructs a layer from `options_`. Does not draw random numbers.
  explicit LayerNormImpl(LayerNormOptions options_) : options(std::move(options_)) { reset(); }

  void reset() override {
    if (!options.elementwise_affine()) return;
    weight = register_parameter("weight", torch::ones(options.normalized_shape()));
    if (options.bias()) bias = register_parameter("bias", torch::zeros(options.normalized_shape()));
  }

  /// Prints the text that `sconce::repr` returns.
  void pretty_print(std::ostream& stream) const override { stream << repr(*this); }

  /// Normalizes `input`.
  /// @throw c10::Error if the last dimensions of `input` differ from `normalized_shape`.
  torch::Tensor forward(const torch::Tensor& input) {
    return torch::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
  }

  LayerNormOptions options;  ///< options of the layer
  torch::Tensor weight;      ///< shape `normalized_shape`; undefined without `elementwise_affine`
  torch::Tensor bias;        ///< shape `normalized_shape`; undefined without `bias` or `weight`
};
/// Module holder for `LayerNormImpl`.
/// Python: `torch.nn.LayerNorm`.
TORCH_MODULE(LayerNorm);

}  // namespace sconce::nn
