#pragma once

#include <torch/arg.h>

#include "sconce/optim/optimizer_of.hpp"
#include "sconce/optim/table_options.hpp"

namespace sconce::optim {

class Adadelta;

/// Options of Adadelta, with Python's names and defaults.
struct AdadeltaOptions : TableOptions<Adadelta, AdadeltaOptions> {
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  TORCH_ARG(double, lr) = 1.0;          ///< learning rate, a factor of the steps
  TORCH_ARG(double, rho) = 0.9;         ///< decay of both means of squares
  TORCH_ARG(double, eps) = 1e-6;        ///< number added to both means before their roots
  TORCH_ARG(double, weight_decay) = 0;  ///< factor of the weight decay
};

/// State of one parameter in Adadelta.
struct AdadeltaParamState : TableParamState<Adadelta, AdadeltaParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU if the
                            ///< learning rate is a tensor on a GPU and the kernels are foreach
  torch::Tensor square_avg = {};  ///< mean of the squares of the gradients, like the parameter
  torch::Tensor acc_delta = {};   ///< mean of the squares of the steps, like the parameter
};

/// Adadelta, which divides each gradient by the root of the mean of its squares and multiplies it
/// by the root of the mean of the squares of the steps. It has Python's kernels: foreach and the
/// loop. `torch::save` and `torch::load` write and read its archives; LibTorch has no Adadelta.
/// Python: `torch.optim.Adadelta`.
class Adadelta : public OptimizerOf<Adadelta, AdadeltaOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
