#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace sconce::detail {

/// The output of a layer in its last run, as far as it can be determined from the layer's
/// operators.
struct LayerOutput {
  std::vector<std::vector<int64_t>> shapes = {};
  int64_t bytes = 0;                               ///< Total size of the outputs of all runs
  at::ScalarType dtype = at::kFloat;               ///< Type of the first output
  std::optional<std::vector<int64_t>> input = {};  ///< Shape of the input, if it is known
};
using LayerOutputs = std::map<const torch::nn::Module*, LayerOutput>;

/// Runs `forward` in this thread and returns the outputs of the layers that ran. If the output of a
/// module cannot be determined, the module is not included.
LayerOutputs observe_layers(const torch::nn::Module& model, const std::function<void()>& forward);

}  // namespace sconce::detail
