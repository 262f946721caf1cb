#pragma once

#include <torch/optim/sgd.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class SGD;

/// State of one parameter in SGD. Its archives are those of LibTorch's `SGDParamState`.
struct SGDParamState : TableParamState<SGD, SGDParamState> {
  torch::Tensor momentum_buffer = {};  ///< like the parameter, or like its sparse gradients;
                                       ///< undefined before the first step

  /// 1 while every step so far was skipped, otherwise 0. A 0-dim float32 tensor on the parameter's
  /// device, or undefined without dampening: only dampening treats the first step differently.
  torch::Tensor first_step_pending = {};
};

/// Stochastic gradient descent with momentum, dampening, Nesterov momentum and weight decay. It
/// takes LibTorch's options and groups, and has Python's kernels. `torch::save` and `torch::load`
/// write and read the archives of `torch::optim::SGD`. If the first step is skipped, the momentum
/// buffer is zero, and the next step counts as the first. Python: `torch.optim.SGD`.
class SGD : public OptimizerOf<SGD, torch::optim::SGDOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
