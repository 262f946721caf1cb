#pragma once

#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// Makes this thread's current capture valid only as long as the optimizer's groups contain the
/// same parameters, and the same parameters require gradients.
void depend_on_groups(const torch::optim::Optimizer& optimizer);

}  // namespace sconce::optim
