#include "distributed/tensor_members.hpp"

#include <ATen/record_function.h>
#include <torch/nn/modules.h>

#include <functional>
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

// Calls a function right before this thread's next operation.
class BeforeOperation {
 public:
  explicit BeforeOperation(std::function<void()> function)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(call))) {
    next_ = std::move(function);
  }
  ~BeforeOperation() {
    next_ = nullptr;
    at::removeCallback(handle_);
  }
  BeforeOperation(const BeforeOperation&) = delete;
  BeforeOperation& operator=(const BeforeOperation&) = delete;

 private:
  static std::unique_ptr<at::ObserverContext> call(const at::RecordFunction&) {
    if (const auto function = std::exchange(next_, nullptr)) function();
    return nullptr;
  }

  static thread_local std::function<void()> next_;
  at::CallbackHandle handle_;
};

thread_local std::function<void()> BeforeOperation::next_;

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

// LibTorch's clone first copies the members. Then `reset` sets them anew, which begins with making
// a tensor. So at that operation the copied members hold the tensors too.
std::vector<size_t> count_members(const torch::nn::Module& layer,
                                  const std::vector<torch::Tensor>& tensors) {
  std::vector<size_t> counts(tensors.size());
  const auto holders = [&](size_t i) { return static_cast<size_t>(tensors[i].use_count()); };
  std::vector<size_t> before;
  for (size_t i = 0; i < tensors.size(); ++i) before.push_back(holders(i));
  const BeforeOperation count([&] {
    for (size_t i = 0; i < tensors.size(); ++i) counts[i] = holders(i) - before[i];
  });
  layer.clone(torch::kCPU);
  return counts;
}

}  // namespace sconce::nn
