#pragma once

#include <torch/optim/adagrad.h>

#include "sconce/optim/optimizer_of.hpp"

namespace sconce::optim {

class Adagrad;

/// Adagrad state for one parameter. Archives use LibTorch's `AdagradParamState` format, in which
/// the step count is an integer.
struct AdagradParamState : TableParamState<Adagrad, AdagradParamState> {
  torch::Tensor step = {};  ///< 0-dim float32, on the parameter's device with fused kernels and on
                            ///< the CPU otherwise, as in Python
  torch::Tensor sum = {};   ///< sum of the squared gradients, like the parameter
};

/// Implements the Adagrad algorithm, with weight decay and learning rate decay. This class accepts
/// LibTorch's options and parameter groups and runs the same kernels as Python. `torch::save` and
/// `torch::load` use the `torch::optim::Adagrad` archive format.
///
/// The constructor creates the state with the optimizer's `initial_accumulator_value`. If a
/// parameter is added later, or is still empty because it belongs to a lazy layer, its state is
/// created in its first step. Sparse gradients require a weight decay of 0 and are not supported if
/// you explicitly select `Kernels::fused`. If fused kernels are selected automatically and
/// `lr_decay` is set, the host reads the step counts of GPU parameters that have sparse gradients.
/// Python: `torch.optim.Adagrad`.
class Adagrad : public OptimizerOf<Adagrad, torch::optim::AdagradOptions> {
 public:
  using OptimizerOf::OptimizerOf;
};

}  // namespace sconce::optim
