#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "workload.hpp"

namespace bench {

/// Steps of a training loop that does not record its losses. The check is the loss after 3 steps.
template <class Optimizer, class Loss>
Workload training_steps(const std::shared_ptr<Optimizer>& optimizer, const Loss& compute_loss) {
  const auto step = [=]() {
    optimizer->zero_grad();
    at::Tensor loss = compute_loss();
    loss.backward();
    optimizer->step();
    return loss;
  };
  for (int i = 0; i < 2; ++i) step();
  return {step, {step().template item<double>()}};
}

}  // namespace bench
