#pragma once

#include <torch/arg.h>

#include <tuple>

#include "sconce/optim/optimizer_of.hpp"
#include "sconce/optim/table_options.hpp"

namespace sconce::optim {

class NAdam;

/// Options for `NAdam`, with the same names and defaults as in Python.
struct NAdamOptions : TableOptions<NAdam, NAdamOptions> {
  using Betas = std::tuple<double, double>;

  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 2e-3;                 ///< learning rate
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);  ///< decay rates of the mean gradient and of the
                                                ///< mean squared gradient
  TORCH_ARG(double, eps) = 1e-8;                ///< term added to the denominator
  TORCH_ARG(double, weight_decay) = 0;          ///< weight decay factor
  TORCH_ARG(double, momentum_decay) = 4e-3;     ///< controls how fast the momentum approaches the
                                                ///< first beta

  /// Whether to decouple the weight decay from the gradient, as in AdamW.
  TORCH_ARG(bool, decoupled_weight_decay) = false;
};

/// NAdam state for one parameter.
struct NAdamParamState : TableParamState<NAdam, NAdamParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU with foreach
                            ///< kernels and a learning rate that is a tensor on a GPU
  torch::Tensor mu_product = {};  ///< product of the momentum values of all steps, like `step`
  torch::Tensor exp_avg = {};     ///< like the parameter
  torch::Tensor exp_avg_sq = {};  ///< like the parameter
};

/// Implements the NAdam algorithm, which is Adam with Nesterov momentum and, optionally, AdamW's
/// weight decay. NAdam runs the same foreach and for-loop kernels as Python. Save and load the
/// optimizer with `torch::save` and `torch::load`. LibTorch does not provide NAdam.
/// Python: `torch.optim.NAdam`.
class NAdam : public OptimizerOf<NAdam, NAdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
