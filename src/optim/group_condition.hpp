#pragma once

#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// Lets the capture that is being made in this thread depend on the optimizer's groups: on which
/// parameters they have, and which of these require gradients.
void depend_on_groups(const torch::optim::Optimizer& optimizer);

}  // namespace sconce::optim
