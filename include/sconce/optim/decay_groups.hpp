#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// The parameters of a model, grouped by weight decay. All sconce optimizers accept it in place of
/// a list of parameters:
///
///     AdamW optimizer(decay_groups(*net, 0.1), 3e-4);
struct DecayGroups {
  /// Parameters with the same weight decay.
  struct Group {
    std::vector<torch::Tensor> params = {};  ///< at least one parameter
    double weight_decay = 0;  ///< replaces the weight decay in the optimizer's options
  };
  std::vector<Group> groups;  ///< one or two: the group that decays, then the one that does not

  /// Constructs the groups. Called by `decay_groups`.
  explicit DecayGroups(std::vector<Group> given) : groups(std::move(given)) {}
};

/// Returns the model's parameters in two groups. The second group has no weight decay and contains
/// biases and the parameters of norms and embeddings: the parameters whose own name contains "bias"
/// or "embedding", and all parameters registered directly by a module whose class name contains
/// "Norm" or "Embedding".
///
/// A parameter that several modules share is in one group only, without weight decay if one of the
/// modules is a norm or an embedding. Frozen parameters are included, because a step skips them. A
/// group without parameters is omitted.
/// Python: `get_decay_parameter_names` of Hugging Face's Trainer, which does decay embeddings.
/// @throw c10::Error if the model has no parameters, or if `weight_decay` is negative or not
/// finite.
DecayGroups decay_groups(const torch::nn::Module& model, double weight_decay);

}  // namespace sconce::optim
