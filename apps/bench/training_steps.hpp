#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "workload.hpp"

namespace bench {

using Tensors = std::vector<at::Tensor>;

/// How a workload runs its step. The captured form of a workload is named NAME_captured.
enum class Run { eager, captured };

/// Calls of `step`, which makes a training step on a batch and returns its loss. The check is the
/// loss after 3 steps; a captured step has been replayed by then.
template <Run run = Run::eager, class Step>
Workload calls_of(const Step& step, const Tensors& batch) {
  const auto workload = [](const auto& call) {
    for (int i = 0; i < 2; ++i) call();
    return Workload{call, {call().template item<double>()}};
  };
  if constexpr (run == Run::eager) {
    return workload([=] { return step(batch); });
  } else {
    const auto captured = std::make_shared<sconce::CapturedStep>(
        batch.front().device(), [step](const Tensors& tensors) { return Tensors{step(tensors)}; },
        sconce::CapturedStepOptions{.warmup = 1});
    return workload([=] { return (*captured)(batch)[0]; });
  }
}

/// Steps of a training loop that does not record its losses.
template <Run run = Run::eager, class Optimizer, class Loss>
Workload training_steps(const std::shared_ptr<Optimizer>& optimizer, const Tensors& batch,
                        const Loss& compute_loss) {
  return calls_of<run>(
      [=](const Tensors& tensors) {
        optimizer->zero_grad();
        at::Tensor loss = compute_loss(tensors);
        loss.backward();
        optimizer->step();
        return loss;
      },
      batch);
}

}  // namespace bench
