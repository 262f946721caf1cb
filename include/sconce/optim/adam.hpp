#pragma once

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class Adam;

/// Adam or AdamW state for one parameter. Archives use LibTorch's `AdamParamState` format, in which
/// the step count is an integer.
struct AdamParamState : TableParamState<Adam, AdamParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the parameter's device with fused kernels and on
                            ///< the CPU otherwise, as in Python
  torch::Tensor exp_avg = {};         ///< like the parameter
  torch::Tensor exp_avg_sq = {};      ///< like the parameter
  torch::Tensor max_exp_avg_sq = {};  ///< like the parameter; undefined without amsgrad
};

/// Implements the Adam algorithm, in which the weight decay is added to the gradient. This class
/// accepts LibTorch's options and parameter groups and runs the same kernels as Python.
/// `Kernels::foreach` does not support tensor learning rates. `torch::save` and `torch::load` use
/// the `torch::optim::Adam` archive format.
/// Python: `torch.optim.Adam`.
class Adam : public OptimizerOf<Adam, torch::optim::AdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

/// Implements the AdamW algorithm, in which the weight decay is decoupled from the gradient. In all
/// other respects, `AdamW` works like `Adam`. Archives use the `torch::optim::AdamW` format.
/// Python: `torch.optim.AdamW`.
class AdamW : public OptimizerOf<AdamW, torch::optim::AdamWOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
