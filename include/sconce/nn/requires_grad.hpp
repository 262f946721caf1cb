#pragma once

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Sets `requires_grad` of all parameters of a module, with `false` to freeze it, and returns the
/// module. Gradients that a parameter has stay: an optimizer that has it steps it until
/// `zero_grad()`. Freeze before a `DistributedDataParallel` is made. A frozen BatchNorm still
/// updates its statistics in training mode. Python: `torch.nn.Module.requires_grad_`.
/// @throw c10::Error if `requires_grad` is true and a parameter is of a type without gradients,
/// such as an integer type.
torch::nn::Module& requires_grad_(torch::nn::Module& module, bool requires_grad = true);

}  // namespace sconce::nn
