#pragma once

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/multilabel_margin_loss.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/soft_margin_loss.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>

#include "sconce/fwd.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce {

/// A function that computes the loss from outputs and targets, and returns it as either a 0-dim
/// tensor with the mean over the examples or a `LossSum`.
///
///     sconce::Trainer trainer({.loss = torch::mse_loss});
///
/// The function may be a LibTorch function with additional arguments, which keep LibTorch's default
/// values: `torch::mse_loss`, `l1_loss`, `smooth_l1_loss`, `huber_loss`, `soft_margin_loss`,
/// `multilabel_margin_loss`, `binary_cross_entropy`, `binary_cross_entropy_with_logits`,
/// `cross_entropy_loss`, and the functions in `torch::nn::functional` that accept an options class
/// as the third argument. The defaults of other functions are unknown, so wrap such functions in a
/// lambda. If the output and target have different sizes, the first six functions throw a
/// c10::Error, whereas Python only warns.
class Loss {
 public:
  /// A loss function that returns a mean.
  using Function =
      std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)>;
  /// A loss function that returns a sum and a count.
  using SumFunction =
      std::function<LossSum(const torch::Tensor& output, const torch::Tensor& target)>;

  /// Constructs an empty loss.
  Loss() = default;

  /// Wraps a function, a lambda, or a module such as `torch::nn::MSELoss()`. Fails to compile for
  /// types that cannot be called with two tensors.
  /// @throw c10::Error if the function has additional arguments and is not listed above.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Loss>)
  Loss(F&& f) {
    using Called = std::decay_t<F>;
    if constexpr (std::is_invocable_r_v<torch::Tensor, Called&, const torch::Tensor&,
                                        const torch::Tensor&>) {
      function_ = std::forward<F>(f);
    } else if constexpr (std::is_invocable_r_v<LossSum, Called&, const torch::Tensor&,
                                               const torch::Tensor&>) {
      sum_function_ = std::forward<F>(f);
    } else if constexpr (std::constructible_from<WithDefaults, Called>) {
      function_ = WithDefaults(f).function;
    } else {
      static_assert(
          !std::same_as<F, F>,
          "sconce::TrainerOptions: expected .loss to be a function of two tensors, output and "
          "target, that returns a tensor: write [](const torch::Tensor& output, const "
          "torch::Tensor& target) { return torch::mse_loss(output, target); }");
    }
  }

  /// Returns whether this object contains a function.
  explicit operator bool() const { return function_ || sum_function_; }
  /// Returns whether this object contains a function that returns a `LossSum`.
  bool returns_sum() const { return static_cast<bool>(sum_function_); }
  /// Calls the function. Returns the loss, and also the count if the result is a `LossSum`.
  StepOutput operator()(const torch::Tensor& output, const torch::Tensor& target) const {
    if (!returns_sum()) return {.loss = function_(output, target)};
    LossSum loss = sum_function_(output, target);
    return {.loss = std::move(loss.sum), .count = std::move(loss.count)};
  }

 private:
  using Tensor = torch::Tensor;
  using Weight = std::optional<torch::Tensor>;

  // A LibTorch function and its default arguments, looked up by type. Functions must be listed
  // explicitly, because another function with the same type may have different defaults.
  struct WithDefaults {
    using OfReduction = Tensor(const Tensor&, const Tensor&, int64_t);
    using OfScale = Tensor(const Tensor&, const Tensor&, int64_t, double);
    using OfWeight = Tensor(const Tensor&, const Tensor&, const Weight&, int64_t);
    using OfWeights = Tensor(const Tensor&, const Tensor&, const Weight&, const Weight&, int64_t);
    using OfClasses = Tensor(const Tensor&, const Tensor&, const Weight&, int64_t, int64_t, double);
    static constexpr int64_t mean = at::Reduction::Mean;

    explicit WithDefaults(OfReduction* f)
        : function(with_size_check(bound(
              f, {at::mse_loss, at::l1_loss, at::soft_margin_loss, at::multilabel_margin_loss},
              mean))) {}
    explicit WithDefaults(OfScale* f)
        : function(with_size_check(bound(f, {at::smooth_l1_loss, at::huber_loss}, mean, 1.))) {}
    explicit WithDefaults(OfWeight* f)
        : function(bound(f, {at::binary_cross_entropy}, Weight(), mean)) {}
    explicit WithDefaults(OfWeights* f)
        : function(bound(f, {at::binary_cross_entropy_with_logits}, Weight(), Weight(), mean)) {}
    explicit WithDefaults(OfClasses* f)
        : function(bound(f, {at::cross_entropy_loss}, Weight(), mean, int64_t{-100}, 0.)) {}
    // Functions in torch::nn::functional.
    template <class Options>
      requires requires { typename Options::reduction_t; }
    explicit WithDefaults(Tensor (*f)(const Tensor&, const Tensor&, const Options&))
        : function(bound(f, {f}, Options())) {}

    template <class F, class... Defaults>
    static Function bound(F f, std::initializer_list<std::type_identity_t<F>> known,
                          const Defaults&... defaults) {
      TORCH_CHECK(std::find(known.begin(), known.end(), f) != known.end(),
                  "sconce::TrainerOptions: loss: expected a function of two tensors or a LibTorch "
                  "loss, got another function with additional arguments, whose default values are "
                  "unknown: write a lambda that calls it with two tensors");
      return [f, defaults...](const Tensor& output, const Tensor& target) {
        return f(output, target, defaults...);
      };
    }

    // LibTorch broadcasts an output of shape (N, 1) and a target of shape (N) to (N, N), so the
    // mean is not the intended loss. Python warns in this case.
    static Function with_size_check(Function f) {
      return [f = std::move(f)](const Tensor& output, const Tensor& target) {
        TORCH_CHECK(output.sizes() == target.sizes(), "sconce::TrainerOptions: loss: expected an ",
                    "output and a target with the same shape, got ", output.sizes(), " and ",
                    target.sizes());
        return f(output, target);
      };
    }

    Function function;
  };

  Function function_ = {};
  SumFunction sum_function_ = {};
};

}  // namespace sconce
