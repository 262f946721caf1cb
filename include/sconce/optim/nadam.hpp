#pragma once

#include <torch/arg.h>

#include <tuple>

#include "sconce/optim/optimizer_of.hpp"
#include "sconce/optim/table_options.hpp"

namespace sconce::optim {

class NAdam;

/// Options of NAdam, with Python's names and defaults.
struct NAdamOptions : TableOptions<NAdam, NAdamOptions> {
  using Betas = std::tuple<double, double>;

  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr) = 2e-3;                 ///< learning rate
  TORCH_ARG(Betas, betas) = Betas(0.9, 0.999);  ///< decay of the mean of the gradients, and of
                                                ///< the mean of their squares
  TORCH_ARG(double, eps) = 1e-8;                ///< number added to the denominator
  TORCH_ARG(double, weight_decay) = 0;          ///< factor of the weight decay
  TORCH_ARG(double, momentum_decay) = 4e-3;     ///< how fast the momentum reaches the first beta
  TORCH_ARG(bool, decoupled_weight_decay) = false;  ///< whether the weight decay is no part of the
                                                    ///< gradient, as in AdamW
};

/// State of one parameter in NAdam.
struct NAdamParamState : TableParamState<NAdam, NAdamParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the CPU, or on the parameter's GPU if the
                            ///< learning rate is a tensor on a GPU and the kernels are foreach
  torch::Tensor mu_product = {};  ///< product of the momenta of all steps, like `step`
  torch::Tensor exp_avg = {};     ///< like the parameter
  torch::Tensor exp_avg_sq = {};  ///< like the parameter
};

/// Adam with Nesterov momentum, whose weight decay may be that of AdamW. It has Python's kernels:
/// foreach and the loop. `torch::save` and `torch::load` write and read its archives; LibTorch has
/// no NAdam. Python: `torch.optim.NAdam`.
class NAdam : public OptimizerOf<NAdam, NAdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
