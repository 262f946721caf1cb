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

/// Options for `checkpoint`.
struct ActivationCheckpointOptions {
  /// Whether the second run draws the same random numbers as the first. Disabling this option is
  /// slightly faster for functions that draw no random numbers. During CUDA graph capture, GPU
  /// generators cannot be reset, so this option must be false and the function must not draw random
  /// numbers.
  bool preserve_rng_state = true;
};

namespace detail {

class CheckpointFrame;  // in src/

/// While the guard is alive, tensors that this thread's operations would otherwise save for the
/// backward pass are discarded. When the backward pass needs the discarded tensors, it calls
/// `recompute` with `inputs` to compute them again.
class [[nodiscard]] CheckpointGuard {
 public:
  using Tensors = std::vector<torch::Tensor>;             ///< the inputs that are tensors
  using Recompute = std::function<void(const Tensors&)>;  ///< runs the function a second time

  /// @throw c10::Error if the autograd engine is not LibTorch's default engine, which is the case
  /// in a Python process.
  CheckpointGuard(const ActivationCheckpointOptions& options, const Tensors& inputs,
                  Recompute recompute);
  ~CheckpointGuard();
  CheckpointGuard(const CheckpointGuard&) = delete;
  CheckpointGuard& operator=(const CheckpointGuard&) = delete;

 private:
  std::shared_ptr<CheckpointFrame> frame_;
};

template <class T>
constexpr bool is_tensor = std::is_same_v<std::decay_t<T>, torch::Tensor>;

/// Returns an undefined tensor if the input is a tensor, and returns the input unchanged otherwise.
template <class T>
T without_memory(const T& input) {
  if constexpr (is_tensor<T>)
    return T();
  else
    return input;
}

}  // namespace detail

/// Calls `function(inputs...)` and returns its result, without keeping the tensors that its
/// operations save for the backward pass. Only the inputs stay in memory. The backward pass runs
/// the function again to recompute the discarded tensors, trading a second forward pass for lower
/// memory use.
///
///     x = sconce::checkpoint(block, x);
///
/// The function must perform the same computation in both runs. The second run enables gradients,
/// uses the autocast settings of the first run, and stops once all required tensors have been
/// recomputed. By default, the CPU generator and the generators of the inputs' GPUs produce the
/// same random numbers in both runs. The generators are restored after the second run. Other side
/// effects of the function, such as updates to BatchNorm running statistics, occur twice.
///
/// `function` can be any callable, including a module holder. The function and all non-tensor
/// inputs are copied. Checkpointed calls may be nested, and they also work in DataParallel and
/// DistributedDataParallel replicas, because gradients flow through the usual autograd graph. If
/// gradients are disabled, the function is called without checkpointing. This function is unrelated
/// to the `Checkpoint` class, which saves a run's state to files.
/// Python: `torch.utils.checkpoint.checkpoint` with `use_reentrant=False`.
/// @throw c10::Error if:
/// - the function is called in a Python process, which has its own autograd engine;
/// - a CUDA graph is being captured and `preserve_rng_state` is true;
/// - the second run saves fewer tensors for the backward pass than the first run;
/// - a tensor saved by the second run has a different shape, type, or device than in the first run.
template <class Function, class... Inputs>
auto checkpoint(const ActivationCheckpointOptions& options, Function function,
                const Inputs&... inputs) {
  std::vector<torch::Tensor> tensors;
  if (!c10::GradMode::is_enabled()) return std::invoke(function, inputs...);
  const auto add = [&tensors](const auto& input) {
    if constexpr (detail::is_tensor<decltype(input)>) tensors.push_back(input);
  };
  (add(inputs), ...);
  auto recompute = [function, kept = std::tuple(detail::without_memory(inputs)...)](
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
  const detail::CheckpointGuard guard(options, tensors, std::move(recompute));
  return std::invoke(function, inputs...);
}

/// Overload that uses the default options.
template <class Function, class... Inputs>
  requires(!std::is_same_v<Function, ActivationCheckpointOptions>)
auto checkpoint(Function function, const Inputs&... inputs) {
  return checkpoint(ActivationCheckpointOptions(), std::move(function), inputs...);
}

}  // namespace sconce
