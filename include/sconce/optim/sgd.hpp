#pragma once

#include <torch/optim/sgd.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class SGD;

/// SGD state for one parameter. Archives use LibTorch's `SGDParamState` format.
struct SGDParamState : TableParamState<SGD, SGDParamState> {
  torch::Tensor momentum_buffer = {};  ///< like the parameter, or like its sparse gradients;
                                       ///< undefined before the first step

  /// A 0-dim float32 tensor on the parameter's device. The value is 1 until the first step that is
  /// not skipped, and 0 afterward. Without dampening, the tensor is undefined, because the first
  /// step is a special case only with dampening.
  torch::Tensor first_step_pending = {};
};

/// Implements stochastic gradient descent with optional momentum, dampening, Nesterov momentum, and
/// weight decay. The optimizer accepts LibTorch's options and parameter groups and runs the same
/// kernels as Python. `torch::save` and `torch::load` use the `torch::optim::SGD` archive format.
/// If the first step is skipped, the momentum buffer is zero, and the next step counts as the first
/// step.
/// Python: `torch.optim.SGD`.
class SGD : public OptimizerOf<SGD, torch::optim::SGDOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
