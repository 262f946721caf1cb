#include "training/trained_objects.hpp"

#include <algorithm>

namespace sconce {

namespace {

template <class T>
bool is_same(const std::weak_ptr<T>& a, const std::weak_ptr<T>& b) {
  return !a.owner_before(b) && !b.owner_before(a) && !a.expired();
}

}  // namespace

TrainedObjects::TrainedObjects(const torch::nn::Module& model, const optim::Optimizer& optimizer)
    : optimizer_(&optimizer), group_values_(optimizer.group_values()) {
  model.apply([this](const torch::nn::Module& module) {
    modules_.push_back({module.weak_from_this(), module.is_training()});
  });
  const auto add = [this](const std::vector<torch::Tensor>& tensors) {
    for (const auto& tensor : tensors) tensors_.emplace_back(tensor.getIntrusivePtr());
  };
  add(model.parameters());
  add(model.buffers());
  for (const auto& group : optimizer.param_groups()) {
    add(group.params());
    sizes_of_groups_.push_back(group.params().size());
  }
}

bool TrainedObjects::are(const TrainedObjects& others) const {
  return optimizer_ == others.optimizer_ && is_same(group_values_, others.group_values_) &&
         sizes_of_groups_ == others.sizes_of_groups_ &&
         std::equal(modules_.begin(), modules_.end(), others.modules_.begin(),
                    others.modules_.end(),
                    [](const Module& a, const Module& b) {
                      return is_same(a.module, b.module) && a.is_training == b.is_training;
                    }) &&
         std::equal(tensors_.begin(), tensors_.end(), others.tensors_.begin(),
                    others.tensors_.end(), [](const Tensor& a, const Tensor& b) {
                      return a._unsafe_get_target() == b._unsafe_get_target();
                    });
}

}  // namespace sconce
