#include "distributed/tensor_members.hpp"

#include <ATen/record_function.h>
#include <torch/nn/modules.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

namespace sconce::nn {

namespace {

template <class Layer>
bool append_members(torch::nn::Module& module, std::vector<torch::Tensor*>& members) {
  auto* layer = dynamic_cast<Layer*>(&module);
  if (layer == nullptr) return false;
  members.push_back(&layer->weight);
  if constexpr (requires { layer->bias; }) members.push_back(&layer->bias);
  if constexpr (requires { layer->pos_weight; }) members.push_back(&layer->pos_weight);
  if constexpr (requires { layer->running_mean; }) {
    members.push_back(&layer->running_mean);
    members.push_back(&layer->running_var);
    members.push_back(&layer->num_batches_tracked);
  }
  return true;
}

template <class... Layers>
std::vector<torch::Tensor*> members_of_one_of(torch::nn::Module& module) {
  std::vector<torch::Tensor*> members;
  static_cast<void>((append_members<Layers>(module, members) || ...));
  return members;
}

std::vector<size_t> reference_counts(const std::vector<torch::Tensor>& tensors) {
  std::vector<size_t> counts;
  for (const auto& tensor : tensors) counts.push_back(tensor.use_count());
  return counts;
}

// Calls a function once, immediately before the next operation in this thread. LibTorch accepts
// only plain functions as callbacks, so a thread-local variable stores the function.
class BeforeNextOperation {
 public:
  explicit BeforeNextOperation(std::function<void()> function)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(call_once))) {
    waiting_ = std::move(function);
  }
  ~BeforeNextOperation() {
    waiting_ = nullptr;
    at::removeCallback(handle_);
  }
  BeforeNextOperation(const BeforeNextOperation&) = delete;
  BeforeNextOperation& operator=(const BeforeNextOperation&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> call_once(const at::RecordFunction&) {
    if (const auto function = std::exchange(waiting_, nullptr)) function();
    return nullptr;
  }

  static inline thread_local std::function<void()> waiting_ = nullptr;
  at::CallbackHandle handle_;
};

}  // namespace

std::vector<torch::Tensor*> tensor_members(torch::nn::Module& layer) {
  using namespace torch::nn;
  return members_of_one_of<LinearImpl, BilinearImpl, EmbeddingImpl, EmbeddingBagImpl, Conv1dImpl,
                           Conv2dImpl, Conv3dImpl, ConvTranspose1dImpl, ConvTranspose2dImpl,
                           ConvTranspose3dImpl, BatchNorm1dImpl, BatchNorm2dImpl, BatchNorm3dImpl,
                           InstanceNorm1dImpl, InstanceNorm2dImpl, InstanceNorm3dImpl,
                           LayerNormImpl, GroupNormImpl, PReLUImpl, NLLLossImpl,
                           CrossEntropyLossImpl, BCEWithLogitsLossImpl>(layer);
}

// C++ cannot enumerate the members of a class, and LibTorch knows only the registered tensors.
// However, `Cloneable::clone` copies the layer with all its members, clears the copy's registered
// tensors, and calls `reset`. The first operation in `reset` creates a tensor. Immediately before
// this operation, each existing tensor's reference count is therefore higher by the number of
// copied members that refer to the tensor.
std::vector<size_t> count_members(const torch::nn::Module& layer,
                                  const std::vector<torch::Tensor>& tensors) {
  const auto before = reference_counts(tensors);
  auto during = before;  // used if `reset` does not create a tensor
  {
    const BeforeNextOperation count([&] { during = reference_counts(tensors); });
    layer.clone(torch::kCPU);
  }
  std::transform(during.begin(), during.end(), before.begin(), during.begin(), std::minus<>());
  return during;
}

}  // namespace sconce::nn
