#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// A model's parameters, grouped by weight decay. All sconce optimizers accept this type in place
/// of a list of parameters:
///
///     AdamW optimizer(decay_groups(*net, 0.1), 3e-4);
struct DecayGroups {
  /// Parameters with the same weight decay.
  struct Group {
    std::vector<torch::Tensor> params = {};  ///< at least one parameter
    double weight_decay = 0;  ///< replaces the weight decay in the optimizer's options
  };
  std::vector<Group> groups;  ///< one or two groups: the group with weight decay comes first

  /// Constructs the groups. Called by `decay_groups`.
  explicit DecayGroups(std::vector<Group> given) : groups(std::move(given)) {}
};

/// Returns the model's parameters in two groups. The second group has no weight decay and contains
/// the biases and the parameters of normalization and embedding layers. More precisely, the second
/// group contains all parameters whose local name (without the module path) contains "bias" or
/// "embedding", and all parameters registered directly by a module whose class name contains "Norm"
/// or "Embedding".
///
/// A parameter shared by several modules belongs to only one group. A shared parameter has no
/// weight decay if any of the modules that share it is a normalization or embedding layer. Frozen
/// parameters are included, because a step skips them. Empty groups are omitted.
/// Python: `get_decay_parameter_names` in Hugging Face's Trainer, which applies weight decay to
/// embeddings.
/// @throw c10::Error if the model has no parameters, or if `weight_decay` is negative or not
/// finite.
DecayGroups decay_groups(const torch::nn::Module& model, double weight_decay);

}  // namespace sconce::optim
