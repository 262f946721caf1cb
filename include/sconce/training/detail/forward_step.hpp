#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <concepts>
#include <utility>
#include <vector>

#include "sconce/training/any_batch.hpp"
#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/detail/own_step.hpp"
#include "sconce/training/loss.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce::detail {

template <class M, class... Inputs>
concept HasForward = requires(M& module, const Inputs&... inputs) {
  { module.forward(inputs...) } -> std::convertible_to<torch::Tensor>;
};

/// Calls `forward` with one to four inputs. `callee` is either the module `M` or a wrapper with a
/// templated `forward` that accepts any arguments, so the number of inputs is determined from `M`.
/// @throw c10::Error if the number of inputs is invalid. `step` is the name of the step that the
/// model could define instead.
template <class M, class Callee>
torch::Tensor call_forward(Callee& callee, const std::vector<torch::Tensor>& in, const char* step) {
  using T = torch::Tensor;
  if constexpr (HasForward<M, T>) {
    if (in.size() == 1) return callee.forward(in[0]);
  }
  if constexpr (HasForward<M, T, T>) {
    if (in.size() == 2) return callee.forward(in[0], in[1]);
  }
  if constexpr (HasForward<M, T, T, T>) {
    if (in.size() == 3) return callee.forward(in[0], in[1], in[2]);
  }
  if constexpr (HasForward<M, T, T, T, T>) {
    if (in.size() == 4) return callee.forward(in[0], in[1], in[2], in[3]);
  }
  TORCH_CHECK(!in.empty(), "sconce::Trainer: expected a model with ", step, ", for batches ",
              "that are not split into inputs and a target automatically");
  TORCH_CHECK(false, "sconce::Trainer: expected a model whose forward takes ", in.size(),
              " tensors and returns one, or one with ", step);
}

/// Returns the step for a model that does not define `training_step`. The step calls `forward` and
/// computes the loss from the output.
template <class M, class Callee>
ModelSteps::Step forward_step(Callee& callee, const Loss& loss) {
  return [&callee, loss](const AnyBatch& batch) -> StepOutput {
    auto [inputs, target] = batch.inputs_and_target();
    auto output = call_forward<M>(callee, inputs, "training_step");
    StepOutput step = loss(output, target);
    check_loss(step, "TrainerOptions::loss");
    TORCH_CHECK(step.count.defined() == loss.returns_sum(),
                "sconce::Trainer: expected a count from ",
                "TrainerOptions::loss, got an undefined tensor");
    step.output = std::move(output);
    step.target = std::move(target);
    return step;
  };
}

}  // namespace sconce::detail
