#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce {

/// Options of `checkpoint`.
struct ActivationCheckpointOptions {
  /// Whether the second run draws the numbers of the first. Without it, a function that draws none
  /// is a little faster. While a CUDA graph is captured it must be false, and the function must
  /// draw nothing: a generator of a GPU cannot be set back then.
  bool preserve_rng_state = true;
};

namespace detail {

class CheckpointFrame;  // in src/

/// While it lives, what operations of this thread save for the backward pass is dropped, and made
/// again by `again` when it is needed. Tensors that `again` takes are `inputs`.
class [[nodiscard]] CheckpointGuard {
 public:
  using Tensors = std::vector<torch::Tensor>;         ///< the inputs that are tensors
  using Again = std::function<void(const Tensors&)>;  ///< runs the function a second time

  /// @throw c10::Error if the autograd engine is not LibTorch's own, as in a Python process.
  CheckpointGuard(const ActivationCheckpointOptions& options, const Tensors& inputs, Again again);
  ~CheckpointGuard();
  CheckpointGuard(const CheckpointGuard&) = delete;
  CheckpointGuard& operator=(const CheckpointGuard&) = delete;

 private:
  std::shared_ptr<CheckpointFrame> frame_;
};

template <class T>
constexpr bool is_tensor = std::is_same_v<std::decay_t<T>, torch::Tensor>;

/// An input without its memory if it is a tensor.
template <class T>
T without_memory(const T& input) {
  if constexpr (is_tensor<T>)
    return T();
  else
    return input;
}

}  // namespace detail

/// Calls `function(inputs...)` and returns its result, but keeps none of the tensors that its
/// operations save for the backward pass. The backward pass runs the function a second time to make
/// them, so the function must do the same work again. Only the inputs stay in memory; the price is
/// a second forward pass of the function. Not to be confused with `Checkpoint`, the files of a run.
///
///     x = sconce::checkpoint(block, x);
///
/// The second run takes place with gradients enabled, under the autocast of the first run, and ends
/// where nothing more is needed. By default it draws the numbers that the first drew from the
/// generators of the CPU and of the inputs' GPUs; afterwards they are as before. What the function
/// changes besides, such as running averages of a batch norm, changes twice.
///
/// `function` is anything that can be called, a module holder too. It is copied, as are the inputs
/// that are no tensors. Checkpoints may be nested. Replicas of DataParallel and
/// DistributedDataParallel may use them, as gradients flow through the usual graph. Where gradients
/// are disabled, the function is just called.
/// Python: `torch.utils.checkpoint.checkpoint` with `use_reentrant=False`.
/// @throw c10::Error if:
/// - the process is a Python process, which has an autograd engine of its own;
/// - a CUDA graph is being captured and `preserve_rng_state` is true;
/// - in the backward pass, the second run saves fewer tensors than the first, or tensors of other
///   shapes, types or devices.
template <class Function, class... Inputs>
auto checkpoint(const ActivationCheckpointOptions& options, Function function,
                const Inputs&... inputs) {
  std::vector<torch::Tensor> tensors;
  if (!c10::GradMode::is_enabled()) return std::invoke(function, inputs...);
  const auto add = [&tensors](const auto& input) {
    if constexpr (detail::is_tensor<decltype(input)>) tensors.push_back(input);
  };
  (add(inputs), ...);
  auto again = [function, kept = std::tuple(detail::without_memory(inputs)...)](
                   const std::vector<torch::Tensor>& saved) {
    auto callable = function;
    auto arguments = kept;
    auto next = saved.begin();
    const auto fill = [&next](auto& argument) {
      if constexpr (detail::is_tensor<decltype(argument)>) argument = *next++;
    };
    std::apply(
        [&](auto&... argument) {
          (fill(argument), ...);
          std::invoke(callable, std::as_const(argument)...);
        },
        arguments);
  };
  const detail::CheckpointGuard guard(options, tensors, std::move(again));
  return std::invoke(function, inputs...);
}

/// The same with the default options.
template <class Function, class... Inputs>
  requires(!std::is_same_v<Function, ActivationCheckpointOptions>)
auto checkpoint(Function function, const Inputs&... inputs) {
  return checkpoint(ActivationCheckpointOptions(), std::move(function), inputs...);
}

}  // namespace sconce
