#include "capture/module_state.hpp"

#include <algorithm>

namespace sconce::detail {

namespace {

const void* data_of(const c10::TensorImpl& tensor) {
  return tensor.has_storage() ? tensor.data() : nullptr;
}

}  // namespace

ModuleState::Tensor::Tensor(const at::Tensor& tensor)
    : weak(tensor.getIntrusivePtr()),
      data(data_of(*tensor.unsafeGetTensorImpl())),
      requires_grad(tensor.requires_grad()) {}

bool ModuleState::Tensor::is_unchanged() const {
  if (weak.expired()) return false;
  const auto& now = *weak._unsafe_get_target();
  return data_of(now) == data && now.requires_grad() == requires_grad;
}

ModuleState::ModuleState(const torch::nn::Module& module)
    : module_(module), is_training_(module.is_training()) {
  for (const auto& submodule : module.modules(/*include_self=*/false)) {
    submodules_.push_back({submodule.get(), submodule, submodule->is_training()});
  }
  for (const auto& tensor : module.parameters()) tensors_.emplace_back(tensor);
  for (const auto& tensor : module.buffers()) tensors_.emplace_back(tensor);
}

bool ModuleState::is_unchanged() const {
  const auto unchanged = [](const auto& part) { return part.is_unchanged(); };
  return module_.is_training() == is_training_ &&
         std::all_of(submodules_.begin(), submodules_.end(), unchanged) &&
         std::all_of(tensors_.begin(), tensors_.end(), unchanged);
}

}  // namespace sconce::detail
