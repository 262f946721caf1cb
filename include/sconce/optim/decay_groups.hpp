#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// The parameters of a model in groups of different weight decay. The optimizers of sconce accept
/// it instead of a list of parameters: `AdamW optimizer(decay_groups(*net, 0.1), 3e-4)`.
struct DecayGroups {
  /// Parameters with the same weight decay.
  struct Group {
    std::vector<torch::Tensor> params = {};  ///< at least one
    double weight_decay = 0;                 ///< instead of the one in the optimizer's options
  };
  std::vector<Group> groups;  ///< one or two: the group that decays, then the one that does not

  /// Makes the groups; `decay_groups` calls it.
  explicit DecayGroups(std::vector<Group> given) : groups(std::move(given)) {}
};

/// Returns the parameters of the model in two groups: the second one, without weight decay,
/// contains biases and the parameters of norms and embeddings. These are the parameters whose own
/// name contains "bias" or "embedding", and all parameters that a module whose class name contains
/// "Norm" or "Embedding" registers itself. A parameter that several modules share is in one group,
/// without weight decay if one of them is a norm or an embedding. Frozen parameters are included,
/// because a step skips them. A group without parameters is left out. Python:
/// `get_decay_parameter_names` of Hugging Face's Trainer, which decays embeddings.
/// @throw c10::Error if the model has no parameters, or weight_decay is negative or not finite.
DecayGroups decay_groups(const torch::nn::Module& model, double weight_decay);

}  // namespace sconce::optim
