#pragma once

#include <torch/arg.h>

#include <tuple>

#include "sconce/optim/optimizer_of.hpp"
#include "sconce/optim/table_options.hpp"

namespace sconce::optim {

class Adamax;

/// Options for `Adamax`, with the same names and defaults as in Python.
struct AdamaxOptions : TableOptions<Adamax, AdamaxOptions> {
  using Betas = std::tuple<double, double>;

  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 2e-3;                 ///< learning rate
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);  ///< decay rates of the mean gradient and of the
                                                ///< largest absolute gradient
  TORCH_ARG(double, eps) = 1e-8;                ///< term added to the absolute gradients
  TORCH_ARG(double, weight_decay) = 0;          ///< weight decay factor
};

/// Adamax state for one parameter.
struct AdamaxParamState : TableParamState<Adamax, AdamaxParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU with foreach
                            ///< kernels and a learning rate that is a tensor on a GPU
  torch::Tensor exp_avg = {};  ///< running average of gradients, like the parameter
  torch::Tensor exp_inf = {};  ///< decaying maximum of the absolute gradients, like the parameter
};

/// Implements the Adamax algorithm, a variant of Adam that uses a decaying maximum of the absolute
/// gradients instead of a running average of their squares. This class runs the same foreach and
/// for-loop kernels as Python. Save and load the optimizer with `torch::save` and `torch::load`.
/// LibTorch does not provide Adamax.
/// Python: `torch.optim.Adamax`.
class Adamax : public OptimizerOf<Adamax, AdamaxOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
