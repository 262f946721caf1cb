#pragma once

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Sets `requires_grad` on all parameters of `module` and returns the module. Pass `false` to
/// freeze the module. Existing gradients are kept, so an optimizer continues to update a frozen
/// parameter until you call `zero_grad()`. Freeze parameters before you construct a
/// `DistributedDataParallel`. A frozen BatchNorm still updates its running statistics in training
/// mode. Python: `torch.nn.Module.requires_grad_`.
/// @throw c10::Error if `requires_grad` is true and a parameter's type, such as int64, does not
/// support gradients.
torch::nn::Module& requires_grad_(torch::nn::Module& module, bool requires_grad = true);

}  // namespace sconce::nn
