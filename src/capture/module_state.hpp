#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "weak_tensor.hpp"

namespace sconce::detail {

/// The state of a module on which a capture depends. It consists of the training mode of each
/// submodule, the addresses of parameters and buffers, and which of them require gradients. The
/// module must outlive this object, but its submodules and tensors do not have to.
class ModuleState {
 public:
  explicit ModuleState(const torch::nn::Module& module);

  /// Returns whether this state is unchanged. Does not detect a submodule or tensor that was added
  /// later, or one that was replaced but still exists.
  bool is_unchanged() const;

 private:
  struct Mode {
    bool is_unchanged() const { return !owner.expired() && module->is_training() == is_training; }

    const torch::nn::Module* module;
    std::weak_ptr<const torch::nn::Module> owner;
    bool is_training;
  };
  struct Tensor {
    explicit Tensor(const at::Tensor& tensor);
    bool is_unchanged() const;

    WeakTensor weak;
    const void* data;
    bool requires_grad;
  };

  const torch::nn::Module& module_;
  bool is_training_;
  std::vector<Mode> submodules_ = {};
  std::vector<Tensor> tensors_ = {};
};

}  // namespace sconce::detail
