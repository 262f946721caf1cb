#pragma once

#include <torch/optim/adagrad.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class Adagrad;

/// Adagrad state for one parameter. Archives use the format of LibTorch's `AdagradParamState`, in
/// which the step count is an integer.
struct AdagradParamState : TableParamState<Adagrad, AdagradParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the parameter's device with fused kernels and on
                            ///< the CPU otherwise, as in Python
  torch::Tensor sum = {};   ///< sum of the squared gradients, like the parameter
};

/// Implements the Adagrad algorithm, with weight decay and learning rate decay. It accepts
/// LibTorch's options and parameter groups and runs the same kernels as Python. `torch::save` and
/// `torch::load` use the archive format of `torch::optim::Adagrad`.
///
/// The constructor creates the state with the optimizer's `initial_accumulator_value`. The state of
/// parameters that are added later, or that are still empty because they belong to a lazy layer, is
/// created in their first step. Sparse gradients require a weight decay of 0 and are not supported
/// with an explicit `Kernels::fused`. If fused kernels were chosen automatically and `lr_decay` is
/// set, the step counts of GPU parameters with sparse gradients are read back to the host.
/// Python: `torch.optim.Adagrad`.
class Adagrad : public OptimizerOf<Adagrad, torch::optim::AdagradOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
