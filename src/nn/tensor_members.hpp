#pragma once

#include <torch/nn/module.h>

#include <vector>

namespace sconce::nn {

/// The members that a layer of torch::nn computes with: its registered tensors, unless a user set
/// them to others. In the same order for all layers of a class; none for what is no such layer.
std::vector<torch::Tensor*> tensor_members(torch::nn::Module& layer);

/// How many members of the layer, whatever its class, hold each of the tensors. Clones the layer to
/// the CPU; another thread must not take or leave one of the tensors at that time.
std::vector<size_t> count_members(const torch::nn::Module& layer,
                                  const std::vector<torch::Tensor>& tensors);

}  // namespace sconce::nn
