#include "sconce/training/batch.hpp"

#include "devices/to_device.hpp"

namespace sconce {

InputsAndTarget inputs_and_target(const std::vector<torch::Tensor>& batch) {
  if (batch.size() == 1) return {batch, batch.front()};
  if (batch.empty()) return {};
  return {{batch.begin(), batch.end() - 1}, batch.back()};
}

void Batch::to(torch::Device device) {
  held_->for_each([&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = to_device(tensor, device);
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
