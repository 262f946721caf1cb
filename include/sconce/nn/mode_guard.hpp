#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

namespace sconce::nn {

/// Restores the modes of a module and of all modules in it, training or evaluation, at the end of
/// the scope:
///
///     const nn::ModeGuard restore(*net);
///     net->eval();
///
/// The module must outlive the guard.
class [[nodiscard]] ModeGuard {
 public:
  /// Notes the modes, and changes nothing.
  explicit ModeGuard(torch::nn::Module& module) : module_(module), training_(module.is_training()) {
    // The module itself is left out, because a model on the stack has no shared pointer.
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
