#pragma once

#include <torch/optim/sgd.h>

#include <vector>

namespace sconce::test {

/// Returns two one-parameter groups.
inline std::vector<torch::optim::OptimizerParamGroup> two_groups() {
  return {{{torch::zeros(1)}}, {{torch::zeros(1)}}};
}

/// Returns an SGD optimizer with learning rates of 0.1 and 0.003 for the two groups, and a rate of
/// 1 for groups added later.
inline torch::optim::SGD sgd_of_two_groups() {
  torch::optim::SGD optimizer(two_groups(), torch::optim::SGDOptions(1).momentum(0.9));
  optimizer.param_groups()[0].options().set_lr(0.1);
  optimizer.param_groups()[1].options().set_lr(0.003);
  return optimizer;
}

}  // namespace sconce::test
