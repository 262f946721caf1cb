#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

namespace sconce::nn {

/// Restores the mode (training or evaluation) of a module and all submodules at the end of the
/// scope:
///
///     const nn::ModeGuard restore(*net);
///     net->eval();
///
/// The module must outlive the guard.
class [[nodiscard]] ModeGuard {
 public:
  /// Records the current modes without changing them.
  explicit ModeGuard(torch::nn::Module& module) : module_(module), training_(module.is_training()) {
    // Skip the module itself, because a stack-allocated model has no shared pointer.
    for (const auto& part : module.modules(/*include_self=*/false)) {
      parts_.emplace_back(part, part->is_training());
    }
  }
  ~ModeGuard() {
    module_.train(training_);
    for (const auto& [part, training] : parts_) part->train(training);
  }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  torch::nn::Module& module_;
  bool training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> parts_;
};

}  // namespace sconce::nn
