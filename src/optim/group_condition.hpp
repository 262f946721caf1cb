#pragma once

#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// Makes this thread's current capture depend on the parameters in the optimizer's groups, and on
/// which of them require gradients.
void depend_on_groups(const torch::optim::Optimizer& optimizer);

}  // namespace sconce::optim
