#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace sconce::detail {

/// What a layer returned in its last run, as far as its operators show it.
struct LayerOutput {
  std::vector<std::vector<int64_t>> shapes = {};
  int64_t bytes = 0;                               ///< Size of the outputs of all runs
  at::ScalarType dtype = at::kFloat;               ///< Type of the first output
  std::optional<std::vector<int64_t>> input = {};  ///< Shape of the input, if it is known
};
using LayerOutputs = std::map<const torch::nn::Module*, LayerOutput>;

/// Runs `forward` in this thread and returns the outputs of the layers in the model that it ran.
/// Modules whose output cannot be known are missing.
LayerOutputs observe_layers(const torch::nn::Module& model, const std::function<void()>& forward);

}  // namespace sconce::detail
