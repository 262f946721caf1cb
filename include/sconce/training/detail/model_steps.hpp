#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/nn/nested_tensors.hpp"
#include "sconce/training/any_batches.hpp"
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
  Step train;                 ///< the step of training
  Step test;                  ///< the step of a test
  Predict predict;            ///< what the model predicts
  /// Turns off the averaging of gradients while its result lives. Empty unless the model is a
  /// DistributedDataParallel.
  std::function<std::shared_ptr<void>()> no_sync = {};
  bool has_output = true;  ///< whether the steps return what metrics need, and not a loss alone
};

// What a method `R step(A)` takes.
template <class Method>
struct ArgumentOf;
template <class R, class C, class A>
struct ArgumentOf<R (C::*)(A)> {
  using type = std::remove_cvref_t<A>;
};
template <class R, class C, class A>
struct ArgumentOf<R (C::*)(A) const> : ArgumentOf<R (C::*)(A)> {};

template <class M>
concept HasTrainingStep = requires { &M::training_step; };
template <class M>
concept HasValidationStep = requires { &M::validation_step; };
template <class M>
concept HasTestStep = requires { &M::test_step; };
template <class M>
concept HasPredictStep = requires { &M::predict_step; };

// Also of one that is a template or has overloads, whose batches' type cannot be told.
template <class M>
concept CanTrainingStep = requires(M& module, const data::Dataset& batch) {
  module.training_step(batch);
} || requires(M& module, const torch::Tensor& batch) { module.training_step(batch); };

inline void check_loss(const torch::Tensor& loss, const char* from) {
  TORCH_CHECK(loss.defined(), "sconce::Trainer: expected a loss from ", from,
              ", got an undefined tensor");
}

inline StepOutput as_step_output(StepOutput output) {
  return output;
}
inline StepOutput as_step_output(torch::Tensor loss) {
  return {std::move(loss)};
}

// The method of the model that makes a step of a batch. That of a test is its validation_step or
// test_step, if it has one.
template <class M, bool Test>
struct OwnStep {
  static constexpr auto named_method() {
    if constexpr (Test && HasValidationStep<M>) {
      return std::pair(&M::validation_step, "the model's validation_step");
    } else if constexpr (Test && HasTestStep<M>) {
      return std::pair(&M::test_step, "the model's test_step");
    } else {
      return std::pair(&M::training_step, "the model's training_step");
    }
  }
  static constexpr auto method = named_method().first;
  using BatchType = typename ArgumentOf<std::remove_const_t<decltype(method)>>::type;
  using Result = decltype((std::declval<M&>().*method)(std::declval<const BatchType&>()));
  static constexpr bool has_output = std::same_as<Result, StepOutput>;

  static StepOutput call(M& module, const BatchType& batch) {
    StepOutput output = as_step_output((module.*method)(batch));
    check_loss(output.loss, named_method().second);
    return output;
  }
  static ModelSteps::Step of(M& module) {
    return [&module](const AnyBatch& batch) { return call(module, batch.as<BatchType>()); };
  }
};

template <class M>
constexpr bool has_output = OwnStep<M, false>::has_output && OwnStep<M, true>::has_output;

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
  static_assert(!CanTrainingStep<M>,
                "sconce::Trainer: expected one training_step that names the type of its batches, "
                "not a template or several");
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
    auto& inner = *model.module();
    const auto predicted = [&](const AnyBatch& batch) { return predict<Inner>(model, batch); };
    if constexpr (HasTrainingStep<Inner>) {
      return {inner,
              [&](const AnyBatch& b) { return step_of_replicas<Inner, false>(model, b); },
              [&](const AnyBatch& b) { return step_of_replicas<Inner, true>(model, b); },
              predicted,
              {},
              has_output<Inner>};
    } else {
      const auto step = forward_step<Inner>(model, loss);
      return {inner, step, step, predicted};
    }
  } else if constexpr (std::is_base_of_v<torch::nn::Module, M>) {
    const auto predicted = [&](const AnyBatch& batch) { return predict<M>(model, batch); };
    if constexpr (HasTrainingStep<M>) {
      using Train = OwnStep<M, false>;
      using Test = OwnStep<M, true>;
      return {model, Train::of(model), Test::of(model), predicted, {}, has_output<M>};
    } else {
      const auto step = forward_step<M>(model, loss);
      return {model, step, step, predicted};
    }
  } else if constexpr (requires { model.no_sync(); }) {  // a DistributedDataParallel
    using Inner = std::remove_cvref_t<decltype(*model.module())>;
    auto& inner = *model.module();
    const auto no_sync = [&model] { return std::shared_ptr<void>(new auto(model.no_sync())); };
    // To test, ranks need not have as many batches, so no forward may wait for the others.
    ModelSteps alone = steps_of(inner, loss);
    if constexpr (HasTrainingStep<Inner>) {
      using Own = OwnStep<Inner, false>;
      const auto train = [&model](const AnyBatch& batch) {
        const auto& rows = batch.as<typename Own::BatchType>();
        return model.call([&](Inner& module) { return Own::call(module, rows); });
      };
      return {inner, train, alone.test, alone.predict, no_sync, has_output<Inner>};
    } else {
      return {inner, forward_step<Inner>(model, loss), alone.test, alone.predict, no_sync};
    }
  } else {  // a holder or a pointer
    TORCH_CHECK(static_cast<bool>(model), "sconce::Trainer: expected a model, got null");
    return steps_of(*model, loss);
  }
}

}  // namespace sconce::detail
