#pragma once

#include <torch/optim/optimizer.h>

namespace sconce::optim {

/// Drops the gradients of all parameters. LibTorch's `zero_grad` detaches each of them first, which
/// takes two operator calls.
inline void drop_gradients(torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups()) {
    for (auto& parameter : group.params()) parameter.mutable_grad().reset();
  }
}

}  // namespace sconce::optim
