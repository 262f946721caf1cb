#pragma once

#include "report/layer_outputs.hpp"

namespace sconce::detail {

/// Adds the outputs that follow from those of other layers: those of a transformer and of its
/// parts, and in a Sequential those of layers without tensors.
void add_container_outputs(const torch::nn::Module& model, LayerOutputs& outputs);

}  // namespace sconce::detail
