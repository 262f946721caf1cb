#pragma once

#include <torch/arg.h>

#include "sconce/optim/optimizer_of.hpp"
#include "sconce/optim/table_options.hpp"

namespace sconce::optim {

class Adadelta;

/// Options for `Adadelta`, with the same names and defaults as in Python.
struct AdadeltaOptions : TableOptions<Adadelta, AdadeltaOptions> {
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1.0;          ///< learning rate, which scales the steps
  TORCH_ARG(double, rho) = 0.9;         ///< decay rate of both running averages of squares
  TORCH_ARG(double, eps) = 1e-6;        ///< term added to both averages before taking the square
                                        ///< root
  TORCH_ARG(double, weight_decay) = 0;  ///< weight decay factor
};

/// Adadelta state for one parameter.
struct AdadeltaParamState : TableParamState<Adadelta, AdadeltaParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU with foreach
                            ///< kernels and a learning rate that is a tensor on a GPU
  torch::Tensor square_avg = {};  ///< running average of squared gradients, like the parameter
  torch::Tensor acc_delta = {};   ///< running average of squared steps, like the parameter
};

/// Implements the Adadelta algorithm, which divides each gradient by the running root mean square
/// of the gradients and multiplies the result by the running root mean square of the steps. This
/// class runs the same foreach and for-loop kernels as Python. Save and load the optimizer with
/// `torch::save` and `torch::load`. LibTorch does not provide Adadelta.
/// Python: `torch.optim.Adadelta`.
class Adadelta : public OptimizerOf<Adadelta, AdadeltaOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
