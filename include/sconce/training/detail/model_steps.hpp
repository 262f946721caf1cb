#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/nn/model.hpp"
#include "sconce/nn/nested_tensors.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/detail/own_step.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce::nn {
class DataParallelBase;
}  // namespace sconce::nn

namespace sconce::detail {

/// The steps of a model on a batch, and its modules. The Trainer's loop uses this instead of the
/// model, so that it is compiled once and not for each model.
struct ModelSteps {
  using Step = std::function<StepOutput(const AnyBatch&)>;        ///< a step on a batch
  using Predict = std::function<torch::Tensor(const AnyBatch&)>;  ///< the output for a batch

  torch::nn::Module& module;  ///< the module with the parameters to train
  Step train = {};            ///< the step of training
  Step test = {};             ///< the step of a test
  Predict predict = {};       ///< what the model predicts
  /// Turns off the averaging of gradients while its result lives. Empty unless the model is a
  /// DistributedDataParallel.
  std::function<std::shared_ptr<void>()> no_sync = {};
  /// The group of a DistributedDataParallel.
  std::optional<distributed::ProcessGroup> group = {};
  bool broadcast_buffers = true;  ///< whether all ranks test with the buffers of rank 0
  /// The name of a step that returns a loss alone, without the output and target that metrics need;
  /// else null.
  const char* train_without_output = nullptr;
  const char* test_without_output = nullptr;
};

// Calls forward with as many tensors, if the module `M`, which may stand within `callee`, can. Else
// the error names the step that the model could have instead.
template <class M, class Callee>
torch::Tensor call_forward(Callee& callee, const std::vector<torch::Tensor>& in, const char* step) {
  constexpr auto takes = []<class... Ts>(std::type_identity<std::tuple<Ts...>>) {
    return requires(M& module, Ts... tensors) {
      { module.forward(tensors...) } -> std::convertible_to<torch::Tensor>;
    };
  };
  using T = torch::Tensor;
  if constexpr (takes(std::type_identity<std::tuple<T>>())) {
    if (in.size() == 1) return callee.forward(in[0]);
  }
  if constexpr (takes(std::type_identity<std::tuple<T, T>>())) {
    if (in.size() == 2) return callee.forward(in[0], in[1]);
  }
  if constexpr (takes(std::type_identity<std::tuple<T, T, T>>())) {
    if (in.size() == 3) return callee.forward(in[0], in[1], in[2]);
  }
  if constexpr (takes(std::type_identity<std::tuple<T, T, T, T>>())) {
    if (in.size() == 4) return callee.forward(in[0], in[1], in[2], in[3]);
  }
  TORCH_CHECK(!in.empty(), "sconce::Trainer: expected a model with ", step, ", for batches ",
              "that are not cut into inputs and a target by themselves");
  TORCH_CHECK(false, "sconce::Trainer: expected a model whose forward takes ", in.size(),
              " tensors and returns one, or one with ", step);
}

// The loop's own step, of a model without one: the loss of what forward returns.
template <class M, class Callee>
ModelSteps::Step forward_step(Callee& callee, const Loss& loss) {
  return [&callee, loss](const AnyBatch& batch) -> StepOutput {
    auto [inputs, target] = batch.inputs_and_target();
    auto output = call_forward<M>(callee, inputs, "training_step");
    auto value = loss(output, target);
    check_loss(value, "TrainerOptions::loss");
    return {std::move(value), std::move(output), std::move(target)};
  };
}

// Of replicas: each makes the step of its part, and their losses count as their examples.
template <class M, bool Test, class Replicas>
StepOutput step_of_replicas(Replicas& replicas, const AnyBatch& batch) {
  using Own = OwnStep<M, Test>;
  const auto part = [](M& module, const typename Own::BatchType& rows) {
    StepOutput step = Own::call(module, rows);
    const auto count = torch::full({1}, AnyBatch(rows).size(), step.loss.detach().options());
    step.loss = step.loss.reshape({1});
    return std::pair(std::move(step), count);
  };
  auto [step, counts] = replicas.call(part, batch.as<typename Own::BatchType>());
  step.loss = (step.loss * counts).sum() / counts.sum();
  return step;
}

// Calls the model's own predict_step, in each of its replicas if it has some, or its forward with
// the inputs of the batch.
template <class M, class Callee>
torch::Tensor predict(Callee& callee, const AnyBatch& batch) {
  torch::Tensor output;
  if constexpr (HasPredictStep<M>) {
    using BatchType = typename ArgumentOf<decltype(&M::predict_step)>::type;
    const auto step = [](M& module, const BatchType& rows) { return module.predict_step(rows); };
    if constexpr (std::is_base_of_v<nn::DataParallelBase, Callee>) {
      output = callee.call(step, batch.as<BatchType>());
    } else {
      output = step(callee, batch.as<BatchType>());
    }
  } else {
    output = call_forward<M>(callee, batch.inputs_and_target().inputs, "predict_step");
  }
  TORCH_CHECK(output.defined(), "sconce::Trainer: expected an output from the model, got an ",
              "undefined tensor");
  return output;
}

/// Returns the steps of a module, of a holder or pointer to one, or of a `nn::DataParallel` or
/// `nn::DistributedDataParallel` around one. They call `training_step(batch)`, which returns the
/// loss or a `StepOutput`, and `validation_step(batch)` or `test_step(batch)`; if the model has no
/// training step, they compute `loss(forward(inputs...), target)`. What it predicts comes from
/// `predict_step(batch)` or `forward(inputs...)`. The model must outlive them.
/// @throw c10::Error if a holder or a pointer is null. The steps throw it if a loss or an output is
/// undefined.
template <class M>
ModelSteps steps_of(M& model, const Loss& loss) {
  if constexpr (std::is_base_of_v<nn::DataParallelBase, M>) {
    using Inner = std::remove_cvref_t<decltype(*model.module())>;
    ModelSteps steps = steps_of(*model.module(), loss);
    steps.predict = [&](const AnyBatch& batch) { return predict<Inner>(model, batch); };
    if constexpr (HasTrainingStep<Inner>) {
      steps.train = [&](const AnyBatch& b) { return step_of_replicas<Inner, false>(model, b); };
      steps.test = [&](const AnyBatch& b) { return step_of_replicas<Inner, true>(model, b); };
    } else {
      steps.train = steps.test = forward_step<Inner>(model, loss);
    }
    return steps;
  } else if constexpr (std::is_base_of_v<torch::nn::Module, M>) {
    check_own_steps<M>();
    ModelSteps steps{model};
    steps.predict = [&](const AnyBatch& batch) { return predict<M>(model, batch); };
    if constexpr (HasTrainingStep<M>) {
      steps.train = OwnStep<M, false>::of(model);
      steps.test = OwnStep<M, true>::of(model);
      steps.train_without_output = OwnStep<M, false>::without_output;
      steps.test_without_output = OwnStep<M, true>::without_output;
    } else {
      steps.train = steps.test = forward_step<M>(model, loss);
    }
    return steps;
  } else if constexpr (requires { model.no_sync(); }) {  // a DistributedDataParallel
    using Inner = std::remove_cvref_t<decltype(*model.module())>;
    // To test, ranks need not have as many batches, so no forward may wait for the others.
    ModelSteps steps = steps_of(*model.module(), loss);
    if constexpr (HasTrainingStep<Inner>) {
      using Own = OwnStep<Inner, false>;
      steps.train = [&model](const AnyBatch& batch) {
        const auto& rows = batch.as<typename Own::BatchType>();
        return model.call([&](Inner& module) { return Own::call(module, rows); });
      };
    } else {
      steps.train = forward_step<Inner>(model, loss);
    }
    steps.no_sync = [&model] { return std::shared_ptr<void>(new auto(model.no_sync())); };
    steps.group = model.process_group();
    steps.broadcast_buffers = model.broadcast_buffers();
    return steps;
  } else if constexpr (nn::Model<M>) {  // a holder or a pointer
    TORCH_CHECK(static_cast<bool>(model), "sconce::Trainer: expected a model, got null");
    return steps_of(*model, loss);
  } else {
    nn::detail::check_model<M>();
    TORCH_CHECK(false, "sconce::Trainer: expected a model, got another type");
  }
}

}  // namespace sconce::detail
