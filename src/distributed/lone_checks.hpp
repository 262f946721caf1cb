#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sconce::nn {

/// Replaces LibTorch's Reducer in a group of one, where the mean of all gradients is the gradient
/// itself. Performs the same checks, and sets zero gradients for parameters that the backward pass
/// reached without a gradient. Like the Reducer, it counts only the backward pass after a forward
/// pass with synchronization.
class LoneChecks {
 public:
  /// `names` contains the parameter names, in the same order, for error messages. Error messages
  /// start with `caller`.
  LoneChecks(const char* caller, std::vector<at::Tensor> parameters,
             std::unordered_map<size_t, std::string> names)
      : caller_(caller),
        parameters_(std::move(parameters)),
        names_(std::move(names)),
        arrived_(parameters_.size()) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      auto accumulator = torch::autograd::impl::grad_accumulator(parameters_[i]);
      const auto key = accumulator->add_post_hook(std::make_unique<OnArrival>(*this, i));
      hooks_.emplace_back(std::move(accumulator), key);
    }
  }
  ~LoneChecks() {
    for (const auto& [accumulator, key] : hooks_) accumulator->del_post_hook(key);
  }
  LoneChecks(const LoneChecks&) = delete;
  LoneChecks& operator=(const LoneChecks&) = delete;

  /// Called before each forward pass with grad mode enabled.
  void check_finished() {
    const std::lock_guard lock(mutex_);
    if (!started_) return;
    std::string missing;
    for (size_t i = 0; i < arrived_.size(); ++i) {
      if (!arrived_[i]) missing += (missing.empty() ? "" : ", ") + names_.at(i);
    }
    TORCH_CHECK(false, caller_,
                "::forward: Expected to have finished reduction in the prior "
                "iteration before starting a new one. Expected that backward reaches all "
                "parameters, or find_unused_parameters = true, got no gradient for ",
                missing);
  }

  /// Called after each forward pass that synchronizes gradients.
  void expect_gradients() {
    const std::lock_guard lock(mutex_);
    is_expecting_ = true;
    arrived_.assign(arrived_.size(), false);
    count_ = 0;
  }

 private:
  struct OnArrival : torch::autograd::FunctionPostHook {
    OnArrival(LoneChecks& lone_checks, size_t parameter_index)
        : checks(lone_checks), index(parameter_index) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                              const torch::autograd::variable_list&) override {
      checks.arrive(index);
      return outputs;
    }
    LoneChecks& checks;
    size_t index;
  };

  void arrive(size_t i) {
    const std::lock_guard lock(mutex_);  // the backward pass uses one thread per device
    if (!is_expecting_) return;
    TORCH_CHECK(!arrived_[i], caller_,
                ": Expected to mark a variable ready only once. Expected one backward pass after "
                "each forward pass, reaching each parameter once, but the parameter with name ",
                names_.at(i), " got a gradient twice");
    arrived_[i] = started_ = true;
    const auto& gradient = parameters_[i].grad();
    TORCH_CHECK(!gradient.defined() || gradient.options().type_equal(parameters_[i].options()),
                caller_, ": expected type ", parameters_[i].toString(), " for the gradient of ",
                names_.at(i), " (the type of the parameter), got ", gradient.toString());
    if (++count_ < arrived_.size()) return;
    torch::autograd::Engine::get_default_engine().queue_callback([this] { finish(); });
  }

  void finish() {
    const std::lock_guard lock(mutex_);
    is_expecting_ = started_ = false;
    for (const auto& parameter : parameters_) {
      if (!parameter.grad().defined())
        parameter.mutable_grad() = at::zeros_like(parameter.detach());
    }
  }

  const char* caller_;
  std::vector<at::Tensor> parameters_;
  std::unordered_map<size_t, std::string> names_;
  std::mutex mutex_ = {};
  std::vector<bool> arrived_;
  size_t count_ = 0;  // the number of ready parameters
  bool is_expecting_ = false, started_ = false;
  // Parameters store only weak pointers to their accumulators.
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(at::Tensor()));
  std::vector<std::pair<Accumulator, uintptr_t>> hooks_ = {};
};

}  // namespace sconce::nn
