#pragma once

#include <torch/optim/rmsprop.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class RMSprop;

/// State of one parameter in RMSprop. Its archives are those of LibTorch's `RMSpropParamState`,
/// whose step count is an integer.
struct RMSpropParamState : TableParamState<RMSprop, RMSpropParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU if the
                            ///< learning rate is a tensor on a GPU and the kernels are foreach
  torch::Tensor square_avg = {};       ///< like the parameter
  torch::Tensor momentum_buffer = {};  ///< like the parameter; undefined without momentum
  torch::Tensor grad_avg = {};         ///< like the parameter; undefined unless centered
};

/// RMSprop with momentum, weight decay and the centered form. It takes LibTorch's options and
/// groups, and has Python's kernels: foreach and the loop. `torch::save` and `torch::load` write
/// and read the archives of `torch::optim::RMSprop`. Python: `torch.optim.RMSprop`.
class RMSprop : public OptimizerOf<RMSprop, torch::optim::RMSpropOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
