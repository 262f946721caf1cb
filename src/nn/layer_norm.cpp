#include "sconce/nn/layer_norm.hpp"

#include <torch/nn/init.h>
#include <torch/types.h>

#include "sconce/repr.hpp"

namespace sconce::nn {

LayerNormImpl::LayerNormImpl(LayerNormOptions from) : options(std::move(from)) {
  reset();
}

void LayerNormImpl::reset() {
  if (!options.elementwise_affine()) return;
  weight = register_parameter("weight", torch::empty(options.normalized_shape()));
  if (options.bias()) bias = register_parameter("bias", torch::empty(options.normalized_shape()));
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  if (weight.defined()) torch::nn::init::ones_(weight);
  if (bias.defined()) torch::nn::init::zeros_(bias);
}

void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << repr(*this);
}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& input) {
  return torch::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}

}  // namespace sconce::nn
