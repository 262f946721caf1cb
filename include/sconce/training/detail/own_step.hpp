#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sconce/data/dataset.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce::detail {

// Describes a step of a model: the types of its batch and result, and how to call it. The primary
// template matches methods with other arguments, which `check_own_steps` rejects.
template <class Method>
struct StepMethod {
  static constexpr bool is_step = false;
  static constexpr bool takes_index = false;
  using BatchType = data::Dataset;
  using Result = torch::Tensor;
  static Result call(auto&&...) { return {}; }
};

// `R step(A batch)`
template <class R, class C, class A>
  requires std::convertible_to<const std::remove_cvref_t<A>&, A>
struct StepMethod<R (C::*)(A)> {
  static constexpr bool is_step = true;
  static constexpr bool takes_index = false;
  using BatchType = std::remove_cvref_t<A>;
  using Result = R;
  static R call(auto method, auto& module, const BatchType& batch, int64_t /*index*/) {
    return (module.*method)(batch);
  }
};

// `R step(A batch, int64_t batch_idx)`, as in Lightning
template <class R, class C, class A, std::integral Index>
  requires std::convertible_to<const std::remove_cvref_t<A>&, A>
struct StepMethod<R (C::*)(A, Index)> {
  static constexpr bool is_step = true;
  static constexpr bool takes_index = true;
  using BatchType = std::remove_cvref_t<A>;
  using Result = R;
  static R call(auto method, auto& module, const BatchType& batch, int64_t index) {
    return (module.*method)(batch, static_cast<Index>(index));
  }
};

template <class R, class C, class... A>
struct StepMethod<R (C::*)(A...) const> : StepMethod<R (C::*)(A...)> {};

template <class M>
concept HasTrainingStep = requires { &M::training_step; };
template <class M>
concept HasValidationStep = requires { &M::validation_step; };
template <class M>
concept HasTestStep = requires { &M::test_step; };
template <class M>
concept HasPredictStep = requires { &M::predict_step; };

// Returns whether the model has a callable that accepts a batch. The callable may be a template or
// overloaded, in which case the type of its batch is unknown.
template <class M, class Call>
constexpr bool takes_batch(const Call&) {
  return std::is_invocable_v<Call, M&, const data::Dataset&> ||
         std::is_invocable_v<Call, M&, const torch::Tensor&>;
}

// Returns whether a method can be a step.
template <class Method>
constexpr bool is_step(Method) {
  return StepMethod<Method>::is_step;
}

// Returns whether a method returns the result of a training or test step.
template <class Method>
constexpr bool returns_loss(Method) {
  using Result = typename StepMethod<Method>::Result;
  return std::convertible_to<Result, torch::Tensor> || std::convertible_to<Result, StepOutput>;
}

// Without this check, a step that is a template or overloaded would be silently ignored.
template <class M>
constexpr void check_that_steps_name_their_batches() {
  const auto train = [](auto& m, const auto& b)
    requires(
        requires { m.training_step(b); } || requires { m.training_step(b, 0); })
  {};
  const auto validation = [](auto& m, const auto& b)
    requires(
        requires { m.validation_step(b); } || requires { m.validation_step(b, 0); })
  {};
  const auto test = [](auto& m, const auto& b)
    requires(
        requires { m.test_step(b); } || requires { m.test_step(b, 0); })
  {};
  const auto predict = [](auto& m, const auto& b)
    requires(
        requires { m.predict_step(b); } || requires { m.predict_step(b, 0); })
  {};
  static_assert(HasTrainingStep<M> || !takes_batch<M>(train),
                "sconce::Trainer: expected one training_step with an explicit batch type, not a "
                "template or several overloads");
  static_assert(HasValidationStep<M> || !takes_batch<M>(validation),
                "sconce::Trainer: expected one validation_step with an explicit batch type, not a "
                "template or several overloads");
  static_assert(HasTestStep<M> || !takes_batch<M>(test),
                "sconce::Trainer: expected one test_step with an explicit batch type, not a "
                "template or several overloads");
  static_assert(HasPredictStep<M> || !takes_batch<M>(predict),
                "sconce::Trainer: expected one predict_step with an explicit batch type, not a "
                "template or several overloads");
}

template <class M>
constexpr void check_own_steps() {
  check_that_steps_name_their_batches<M>();
  if constexpr (HasTrainingStep<M>) {
    static_assert(is_step(&M::training_step),
                  "sconce::Trainer: expected training_step(const Batch& batch) or "
                  "training_step(const Batch& batch, int64_t batch_idx), got other arguments");
    static_assert(returns_loss(&M::training_step),
                  "sconce::Trainer: expected a training_step that returns the loss, a "
                  "torch::Tensor, or a sconce::StepOutput, got another type");
  }
  if constexpr (HasValidationStep<M>) {
    static_assert(is_step(&M::validation_step) && returns_loss(&M::validation_step),
                  "sconce::Trainer: expected validation_step(const Batch& batch) or "
                  "validation_step(const Batch& batch, int64_t batch_idx) that returns the loss or "
                  "a sconce::StepOutput, got another one");
  }
  if constexpr (HasTestStep<M>) {
    static_assert(is_step(&M::test_step) && returns_loss(&M::test_step),
                  "sconce::Trainer: expected test_step(const Batch& batch) or test_step(const "
                  "Batch& batch, int64_t batch_idx) that returns the loss or a sconce::StepOutput, "
                  "got another one");
  }
  if constexpr (HasPredictStep<M>) {
    static_assert(is_step(&M::predict_step),
                  "sconce::Trainer: expected predict_step(const Batch& batch) or "
                  "predict_step(const Batch& batch, int64_t batch_idx), got other arguments");
  }
}

// Detaches the count as well, so that wrappers do not look for gradients in it.
inline void check_loss(StepOutput& step, const char* from) {
  const auto& loss = step.loss;
  TORCH_CHECK(loss.defined(), "sconce::Trainer: expected a loss from ", from,
              ", got an undefined tensor");
  TORCH_CHECK(loss.numel() == 1 && !loss.is_complex(), "sconce::Trainer: expected a loss of one ",
              "real number from ", from, ", such as the mean over the examples, got ",
              loss.toString(), " of sizes ", loss.sizes());
  if (!step.count.defined()) return;
  const bool is_number = !step.count.is_complex() && step.count.scalar_type() != c10::kBool;
  TORCH_CHECK(step.count.numel() == 1 && is_number,
              "sconce::Trainer: expected a count of one real number from ", from,
              ", such as (target != -100).sum(), got ", step.count.toString(), " of sizes ",
              step.count.sizes());
  TORCH_CHECK(step.count.device() == loss.device(), "sconce::Trainer: expected the count from ",
              from, " on the device of the loss (", loss.device(), "), got it on ",
              step.count.device());
  step.count = step.count.detach().reshape({});
}

// Detaches the values, so that wrappers do not look for gradients in them.
inline void check_values(StepOutput& step, const char* from) {
  for (auto& [name, value] : step.values) {
    TORCH_CHECK(value.defined(), "sconce::Trainer: expected a value '", name, "' from ", from,
                ", got an undefined tensor");
    TORCH_CHECK(value.numel() == 1 && !value.is_complex(), "sconce::Trainer: expected a value '",
                name, "' of one real number from ", from, ", such as the mean over the examples, ",
                "got ", value.toString(), " of sizes ", value.sizes());
    TORCH_CHECK(value.device() == step.loss.device(), "sconce::Trainer: expected the value '", name,
                "' from ", from, " on the device of the loss (", step.loss.device(),
                "), got it on ", value.device());
    value = value.detach().reshape({});
  }
}

inline StepOutput as_step_output(StepOutput output) {
  return output;
}
inline StepOutput as_step_output(torch::Tensor loss) {
  return {std::move(loss)};
}

// The model's method for a step on a batch. For a test, this is validation_step or test_step, if
// the model defines either.
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
  using Method = StepMethod<std::remove_const_t<decltype(method)>>;
  using BatchType = typename Method::BatchType;
  using Result = std::remove_cvref_t<typename Method::Result>;
  // The name of the method if it returns only a loss. Null otherwise.
  static constexpr const char* without_output =
      std::same_as<Result, StepOutput> ? nullptr : named_method().second;

  // `index` is the index of the batch in its epoch.
  static StepOutput call(M& module, const BatchType& batch, int64_t index) {
    StepOutput output;
    if constexpr (returns_loss(method)) {
      output = as_step_output(Method::call(method, module, batch, index));
    }
    check_loss(output, named_method().second);
    check_values(output, named_method().second);
    return output;
  }
  static auto of(M& module) {
    return [&module](const AnyBatch& batch) {
      return call(module, batch.as<BatchType>(), batch.index());
    };
  }
};

}  // namespace sconce::detail
