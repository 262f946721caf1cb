#pragma once

#include <torch/optim/adagrad.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class Adagrad;

/// State of one parameter in Adagrad. Its archives are those of LibTorch's `AdagradParamState`,
/// whose step count is an integer.
struct AdagradParamState : TableParamState<Adagrad, AdagradParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the parameter's device with fused kernels, on the
                            ///< CPU otherwise, as in Python
  torch::Tensor sum = {};   ///< sum of the squares of the gradients, like the parameter
};

/// Adagrad with weight decay and a decay of the learning rate. It takes LibTorch's options and
/// groups, and has Python's kernels. `torch::save` and `torch::load` write and read the archives of
/// `torch::optim::Adagrad`.
///
/// The constructor makes the states, with the optimizer's `initial_accumulator_value`. Parameters
/// that are added later, or are still empty like those of a lazy layer, get theirs in their first
/// step. Sparse gradients need a weight decay of 0, and kernels other than a given
/// `Kernels::fused`. If fused kernels were chosen automatically and there is an `lr_decay`, the
/// host reads the step counts of parameters on a GPU with sparse gradients.
/// Python: `torch.optim.Adagrad`.
class Adagrad : public OptimizerOf<Adagrad, torch::optim::AdagradOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
