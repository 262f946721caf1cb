#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <concepts>
#include <type_traits>
#include <utility>

#include "sconce/data/dataset.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce::detail {

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

// Returns whether the model has a callable that takes a batch: also one that is a template or has
// overloads, whose batches' type cannot be told.
template <class M, class Call>
constexpr bool takes_batch(const Call&) {
  return std::is_invocable_v<Call, M&, const data::Dataset&> ||
         std::is_invocable_v<Call, M&, const torch::Tensor&>;
}

// A step that is a template or has overloads would be passed over without a word.
template <class M>
constexpr void check_own_steps() {
  const auto train = [](auto& m, const auto& b)
    requires requires { m.training_step(b); }
  {};
  const auto validation = [](auto& m, const auto& b)
    requires requires { m.validation_step(b); }
  {};
  const auto test = [](auto& m, const auto& b)
    requires requires { m.test_step(b); }
  {};
  const auto predict = [](auto& m, const auto& b)
    requires requires { m.predict_step(b); }
  {};
  static_assert(HasTrainingStep<M> || !takes_batch<M>(train),
                "sconce::Trainer: expected one training_step that names the type of its batches, "
                "not a template or several");
  static_assert(HasValidationStep<M> || !takes_batch<M>(validation),
                "sconce::Trainer: expected one validation_step that names the type of its "
                "batches, not a template or several");
  static_assert(HasTestStep<M> || !takes_batch<M>(test),
                "sconce::Trainer: expected one test_step that names the type of its batches, not a "
                "template or several");
  static_assert(HasPredictStep<M> || !takes_batch<M>(predict),
                "sconce::Trainer: expected one predict_step that names the type of its batches, "
                "not a template or several");
}

inline void check_loss(const torch::Tensor& loss, const char* from) {
  TORCH_CHECK(loss.defined(), "sconce::Trainer: expected a loss from ", from,
              ", got an undefined tensor");
  TORCH_CHECK(loss.numel() == 1 && !loss.is_complex(), "sconce::Trainer: expected a loss of one ",
              "real number from ", from, ", such as the mean over the examples, got ",
              loss.toString(), " of sizes ", loss.sizes());
}

// Detaches the values, so that no wrapper looks for gradients in them.
inline void check_values(StepOutput& step, const char* from) {
  for (auto& [name, value] : step.values) {
    TORCH_CHECK(value.defined(), "sconce::Trainer: expected a value '", name, "' from ", from,
                ", got an undefined tensor");
    TORCH_CHECK(value.numel() == 1 && !value.is_complex(), "sconce::Trainer: expected a value '",
                name, "' of one real number from ", from, ", such as the mean over the examples, ",
                "got ", value.toString(), " of sizes ", value.sizes());
    TORCH_CHECK(value.device() == step.loss.device(), "sconce::Trainer: expected the value '", name,
                "' from ", from, " on the device of the loss, ", step.loss.device(), ", got it on ",
                value.device());
    value = value.detach().reshape({});
  }
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
  // The method's name if it returns a loss alone; else null.
  static constexpr const char* without_output =
      std::same_as<Result, StepOutput> ? nullptr : named_method().second;

  static StepOutput call(M& module, const BatchType& batch) {
    StepOutput output = as_step_output((module.*method)(batch));
    check_loss(output.loss, named_method().second);
    check_values(output, named_method().second);
    return output;
  }
  static auto of(M& module) {
    return [&module](const AnyBatch& batch) { return call(module, batch.as<BatchType>()); };
  }
};

}  // namespace sconce::detail
