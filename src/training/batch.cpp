#include "sconce/training/batch.hpp"

namespace sconce {

InputsAndTarget inputs_and_target(const std::vector<torch::Tensor>& batch) {
  if (batch.size() == 1) return {batch, batch.front()};
  if (batch.empty()) return {};
  return {{batch.begin(), batch.end() - 1}, batch.back()};
}

void Batch::to(torch::Device device) {
  // Only towards a GPU: a copy to the CPU that nobody waits for is read before it is there.
  const bool non_blocking = device.is_cuda();
  held_->for_each([&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = tensor.to(device, non_blocking);
  });
}

int64_t Batch::size() const {
  torch::Tensor first;
  held_->for_each([&](torch::Tensor& tensor) {
    if (!first.defined()) first = tensor;
  });
  TORCH_CHECK(first.defined() && first.dim() > 0,
              "sconce::Batch: expected a first tensor of one dimension or more");
  return first.size(0);
}

}  // namespace sconce
