#pragma once

#include <torch/nn/module.h>

#include <vector>

namespace sconce::nn {

/// Returns the tensor members that a torch::nn layer uses in its computation. They refer to the
/// registered tensors, unless a user set the members to other tensors. The order is the same for
/// all layers of a class. Returns an empty list for any other module.
std::vector<torch::Tensor*> tensor_members(torch::nn::Module& layer);

/// Returns the number of the layer's members that refer to each tensor. Accepts layers of any
/// class, and clones the layer to the CPU. During the call, no other thread may copy or release any
/// of the tensors.
std::vector<size_t> count_members(const torch::nn::Module& layer,
                                  const std::vector<torch::Tensor>& tensors);

}  // namespace sconce::nn
