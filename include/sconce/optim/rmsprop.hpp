#pragma once

#include <torch/optim/rmsprop.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class RMSprop;

/// RMSprop state for one parameter. Archives use LibTorch's `RMSpropParamState` format, in which
/// the step count is an integer.
struct RMSpropParamState : TableParamState<RMSprop, RMSpropParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU with foreach
                            ///< kernels and a learning rate that is a tensor on a GPU
  torch::Tensor square_avg = {};       ///< like the parameter
  torch::Tensor momentum_buffer = {};  ///< like the parameter; undefined without momentum
  torch::Tensor grad_avg = {};         ///< like the parameter; undefined unless centered
};

/// Implements the RMSprop algorithm, with optional momentum, weight decay, and centering. RMSprop
/// accepts LibTorch's options and parameter groups and runs the same foreach and for-loop kernels
/// as Python. `torch::save` and `torch::load` use the `torch::optim::RMSprop` archive format.
/// Python: `torch.optim.RMSprop`.
class RMSprop : public OptimizerOf<RMSprop, torch::optim::RMSpropOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
