#pragma once

#include "report/layer_outputs.hpp"

namespace sconce::detail {

/// Adds outputs that can be derived from the outputs of other layers. This applies to transformers
/// and their parts, and to layers without tensors in a Sequential.
void add_container_outputs(const torch::nn::Module& model, LayerOutputs& outputs);

}  // namespace sconce::detail
