#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "sconce/nn/model.hpp"
#include "sconce/training/any_batch.hpp"
#include "sconce/training/detail/forward_step.hpp"
#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/detail/own_step.hpp"
#include "sconce/training/loss.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce::nn {
class DataParallelBase;
}  // namespace sconce::nn

// A step of the model `M` runs in one of three ways, depending on the object that the user passes
// to the Trainer:
// - a module calls it;
// - a nn::DataParallel calls it on each replica with a part of the batch;
// - a nn::DistributedDataParallel calls it through its own `call` function, which averages the
//   gradients.
// The concepts recognize the wrappers by their interfaces, so that the Trainer does not have to
// include them.
namespace sconce::detail {

template <class T>
concept Replicas = std::derived_from<T, nn::DataParallelBase>;
template <class T>
concept AveragesGradients = requires(T& model) { model.no_sync(); };
template <class T>
using InnerOf = std::remove_cvref_t<decltype(*std::declval<T&>().module())>;

/// Returns a function that calls `predict_step` if the model defines it, and otherwise calls
/// `forward` with the batch's inputs.
template <class M, class Callee>
ModelSteps::Predict predict_step(Callee& callee) {
  return [&callee](const AnyBatch& batch) {
    torch::Tensor output;
    if constexpr (HasPredictStep<M>) {
      using Method = StepMethod<decltype(&M::predict_step)>;
      using BatchType = typename Method::BatchType;
      const auto step = [index = batch.index()](M& module, const BatchType& rows) {
        return Method::call(&M::predict_step, module, rows, index);
      };
      if constexpr (Replicas<Callee>) {
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
  };
}

template <class M>
ModelSteps steps_of_module(M& module, const Loss& loss) {
  check_own_steps<M>();
  ModelSteps steps{module};
  steps.predict = predict_step<M>(module);
  if constexpr (HasTrainingStep<M>) {
    steps.train = OwnStep<M, false>::of(module);
    steps.test = OwnStep<M, true>::of(module);
    steps.train_without_output = OwnStep<M, false>::without_output;
    steps.test_without_output = OwnStep<M, true>::without_output;
    steps.may_have_values = !steps.train_without_output || !steps.test_without_output;
    steps.train_takes_index = OwnStep<M, false>::Method::takes_index;
  } else {
    steps.train = steps.test = forward_step<M>(module, loss);
    steps.may_have_values = loss.returns_sum();
  }
  return steps;
}

/// Splits the batch into parts and runs the step on a separate replica for each part. The loss and
/// the values are averaged over the parts, weighted by the number of examples in each part. If a
/// step returns a count, the losses are summed over the parts instead.
template <class M, bool Test, Replicas R>
ModelSteps::Step step_in_replicas(R& replicas) {
  using Own = OwnStep<M, Test>;
  return [&replicas](const AnyBatch& batch) {
    const auto part = [index = batch.index()](M& module, const typename Own::BatchType& rows) {
      StepOutput step = Own::call(module, rows, index);
      const auto examples = torch::full({1}, AnyBatch(rows).size(), step.loss.detach().options());
      step.loss = step.loss.reshape({1});
      if (step.count.defined()) step.count = step.count.reshape({1});
      for (auto& value : step.values) value.second = value.second.reshape({1});
      return std::pair(std::move(step), examples);
    };
    auto [step, examples] = replicas.call(part, batch.as<typename Own::BatchType>());
    const auto mean = [&of = examples](const torch::Tensor& parts) {
      return (parts * of).sum() / of.sum();
    };
    step.loss = step.count.defined() ? step.loss.sum() : mean(step.loss);
    if (step.count.defined()) step.count = step.count.sum();
    for (auto& value : step.values) value.second = mean(value.second);
    return step;
  };
}

template <Replicas R>
ModelSteps steps_of_replicas(R& replicas, const Loss& loss) {
  using M = InnerOf<R>;
  ModelSteps steps = steps_of_module(*replicas.module(), loss);
  steps.predict = predict_step<M>(replicas);
  if constexpr (HasTrainingStep<M>) {
    steps.train = step_in_replicas<M, false>(replicas);
    steps.test = step_in_replicas<M, true>(replicas);
  } else {
    steps.train = steps.test = forward_step<M>(replicas, loss);
  }
  return steps;
}

/// During tests and predictions, the batch count may differ between ranks, so a forward pass must
/// not wait for other ranks. Therefore, test and prediction steps call the module directly.
template <AveragesGradients D>
ModelSteps steps_of_rank(D& model, const Loss& loss) {
  using M = InnerOf<D>;
  ModelSteps steps = steps_of_module(*model.module(), loss);
  if constexpr (HasTrainingStep<M>) {
    using Own = OwnStep<M, false>;
    steps.train = [&model](const AnyBatch& batch) {
      const auto& rows = batch.as<typename Own::BatchType>();
      return model.call([&](M& module) { return Own::call(module, rows, batch.index()); });
    };
  } else {
    steps.train = forward_step<M>(model, loss);
  }
  steps.no_sync = [&model] { return std::shared_ptr<void>(new auto(model.no_sync())); };
  steps.group = model.process_group();
  steps.broadcast_buffers = model.broadcast_buffers();
  return steps;
}

/// Returns a model's training, test, and prediction steps. The model may be a module, a module
/// holder or pointer, or an `nn::DataParallel` or `nn::DistributedDataParallel` wrapper. The steps
/// call `training_step(batch)`, which returns the loss or a `StepOutput`, and
/// `validation_step(batch)` or `test_step(batch)`. If the model does not define a training step,
/// the steps compute `loss(forward(inputs...), target)`. Predictions are computed by
/// `predict_step(batch)` or `forward(inputs...)`. The model must outlive the steps.
/// @throw c10::Error if a module holder or pointer is null.
/// The steps throw a c10::Error if a loss or an output is undefined.
template <class M>
ModelSteps steps_of(M& model, const Loss& loss) {
  if constexpr (Replicas<M>) {
    return steps_of_replicas(model, loss);
  } else if constexpr (std::derived_from<M, torch::nn::Module>) {
    return steps_of_module(model, loss);
  } else if constexpr (AveragesGradients<M>) {
    return steps_of_rank(model, loss);
  } else if constexpr (nn::Model<M>) {  // a holder or a pointer
    TORCH_CHECK(static_cast<bool>(model), "sconce::Trainer: expected a model, got null");
    return steps_of(*model, loss);
  } else {
    nn::detail::check_model<M>();
    TORCH_CHECK(false, "sconce::Trainer: expected a model, got another type");
  }
}

}  // namespace sconce::detail
