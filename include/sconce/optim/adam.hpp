#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class Adam;

/// State of one parameter in Adam and AdamW. Its archives are those of LibTorch's
/// `AdamParamState`, whose step count is an integer.
struct AdamParamState : TableParamState<Adam, AdamParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the parameter's device with fused kernels, on the
                            ///< CPU otherwise, as in Python
  torch::Tensor exp_avg = {};         ///< like the parameter
  torch::Tensor exp_avg_sq = {};      ///< like the parameter
  torch::Tensor max_exp_avg_sq = {};  ///< like the parameter; undefined without amsgrad
};

/// Adam, in which the weight decay is part of the gradient. It takes LibTorch's options and groups,
/// and has Python's kernels. `Kernels::foreach` needs a number as the learning rate. `torch::save`
/// and `torch::load` write and read the archives of `torch::optim::Adam`.
/// Python: `torch.optim.Adam`.
class Adam : public OptimizerOf<Adam, torch::optim::AdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

/// Adam, in which the weight decay is not part of the gradient. The rest is as in `Adam`, and
/// archives are those of `torch::optim::AdamW`. Python: `torch.optim.AdamW`.
class AdamW : public OptimizerOf<AdamW, torch::optim::AdamWOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
