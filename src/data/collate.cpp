#include "sconce/data/collate.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/pad_sequence.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <iterator>

namespace sconce::data {

namespace {

// Returns whether `stack_out` produces the same result as `stack`. Unlike `stack`, `stack_out` does
// not promote types or record gradients.
bool stack_without_change(const std::vector<torch::Tensor>& tensors) {
  return std::ranges::all_of(tensors, [&](const torch::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == tensors[0].scalar_type() &&
           !tensor.requires_grad();
  });
}

}  // namespace

torch::Tensor Stack::tensors(const std::vector<torch::Tensor>& tensors) const {
  for (size_t i = 1; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].sizes() == tensors[0].sizes(),
                "sconce::data::Stack: expected tensors of the same size, got ", tensors[0].sizes(),
                " in item 0 of the batch and ", tensors[i].sizes(), " in item ", i,
                "; sconce::data::PadSequence pads shorter tensors");
  }
  if (!pin_memory || !stack_without_change(tensors)) return at::stack(tensors);
  std::vector<int64_t> sizes = tensors[0].sizes().vec();
  sizes.insert(sizes.begin(), std::ssize(tensors));
  torch::Tensor batch = at::empty(sizes, tensors[0].options().pinned_memory(true));
  return at::stack_out(batch, tensors);
}

torch::Tensor PadSequence::tensors(const std::vector<torch::Tensor>& tensors) const {
  if (tensors[0].dim() == 0) return Stack().tensors(tensors);
  for (size_t i = 1; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].dim() == tensors[0].dim() &&
                    tensors[i].sizes().slice(1) == tensors[0].sizes().slice(1),
                "sconce::data::PadSequence: expected tensors that differ only in their first "
                "dimension, got ",
                tensors[0].sizes(), " in item 0 of the batch and ", tensors[i].sizes(), " in item ",
                i);
  }
  return at::pad_sequence(tensors, /*batch_first=*/true, padding_value);
}

}  // namespace sconce::data
