#include "sconce/training/any_batch.hpp"

#include "to_device.hpp"

namespace sconce {

InputsAndTarget inputs_and_target(const std::vector<torch::Tensor>& batch) {
  if (batch.size() == 1) return {batch, batch.front()};
  if (batch.empty()) return {};
  return {{batch.begin(), batch.end() - 1}, batch.back()};
}

void AnyBatch::to(torch::Device device) {
  holder_->for_each([&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = to_device(tensor, device);
  });
  holder_->update_dataset();
}

std::vector<torch::Tensor> AnyBatch::tensors() const {
  std::vector<torch::Tensor> all;
  holder_->for_each([&](torch::Tensor& tensor) { all.push_back(tensor); });
  return all;
}

void AnyBatch::set_tensors(const std::vector<torch::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == this->tensors().size(), "sconce::AnyBatch::set_tensors: expected ",
              this->tensors().size(), " tensors, got ", tensors.size());
  size_t next = 0;
  holder_->for_each([&](torch::Tensor& tensor) { tensor = tensors[next++]; });
  holder_->update_dataset();
}

int64_t AnyBatch::size() const {
  torch::Tensor first;
  holder_->for_each([&](torch::Tensor& tensor) {
    if (!first.defined()) first = tensor;
  });
  TORCH_CHECK(first.defined() && first.dim() > 0,
              "sconce::AnyBatch: expected the first tensor to have at least one dimension");
  return first.size(0);
}

}  // namespace sconce
