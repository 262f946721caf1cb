#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <vector>

#include "sconce/optim/optimizer.hpp"

namespace sconce {

/// Non-owning references to the objects that a step trains. As long as this object exists, no new
/// object can be mistaken for one of them.
class TrainedObjects {
 public:
  TrainedObjects(const torch::nn::Module& model, const optim::Optimizer& optimizer);

  /// Returns whether both refer to the same objects: the same modules in the same modes, the same
  /// parameters and buffers, and the same optimizer with its groups. A model that is not owned by a
  /// std::shared_ptr is never considered the same, because a different model could be located at
  /// its address.
  bool are(const TrainedObjects& others) const;

 private:
  using Tensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  struct Module {
    std::weak_ptr<const torch::nn::Module> module;
    bool is_training;
  };

  const optim::Optimizer* optimizer_;
  std::weak_ptr<const void> group_values_;
  std::vector<Module> modules_ = {};
  std::vector<Tensor> tensors_ = {};
  std::vector<size_t> sizes_of_groups_ = {};
};

}  // namespace sconce
