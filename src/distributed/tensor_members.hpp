#pragma once

#include <torch/nn/module.h>

#include <vector>

namespace sconce::nn {

/// Returns the tensor members that a layer of torch::nn computes with. They are its registered
/// tensors, unless a user set them to others. The order is the same for all layers of a class.
/// Empty for any other module.
std::vector<torch::Tensor*> tensor_members(torch::nn::Module& layer);

/// Returns how many members of the layer, of any class, hold each of the tensors. Clones the layer
/// to the CPU. No other thread may copy or release one of the tensors meanwhile.
std::vector<size_t> count_members(const torch::nn::Module& layer,
                                  const std::vector<torch::Tensor>& tensors);

}  // namespace sconce::nn
