#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce {

/// The objects that a step trains, without a share in them. As long as this exists, no later object
/// is taken for one of them.
class TrainedObjects {
 public:
  TrainedObjects(const torch::nn::Module& model, const optim::Optimizer& optimizer);

  /// Returns whether both are the same objects: all modules in the same mode, all parameters and
  /// buffers, the optimizer with its groups. A model that no std::shared_ptr owns cannot be told
  /// from another at its address, and is never the same.
  bool are(const TrainedObjects& others) const;

 private:
  using Tensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Module {
    std::weak_ptr<const torch::nn::Module> module;
    bool is_training;
  };

  const optim::Optimizer* optimizer_;
  std::weak_ptr<const void> of_optimizer_;
  std::vector<Module> modules_ = {};
  std::vector<Tensor> tensors_ = {};
  std::vector<size_t> sizes_of_groups_ = {};
};

}  // namespace sconce
