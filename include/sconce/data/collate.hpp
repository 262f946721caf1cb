#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce::data {

namespace detail {

// Makes of items, each of which holds as many tensors, one: its k-th tensor is what `join` returns
// of their k-th tensors.
template <class Item, class Join>
Item join_items(std::vector<Item> items, const Join& join) {
  static_assert(nn::NestedTensors<Item>::only,
                "sconce::data: expected items that hold tensors and nothing else; give a collate "
                "function of your own for others");
  std::vector<std::vector<torch::Tensor>> columns;
  nn::for_each_tensor(items.front(), [&](torch::Tensor& tensor) {
    columns.emplace_back().reserve(items.size());
    columns.back().push_back(tensor);
  });
  for (size_t i = 1; i < items.size(); ++i) {
    TORCH_CHECK(nn::NestedTensors<Item>::alike(items[i], items.front()),
                "sconce::data: expected items with as many tensors each, got another number in "
                "item ", i, " of the batch than in item 0");
    size_t k = 0;
    nn::for_each_tensor(items[i],
                        [&](torch::Tensor& tensor) { columns[k++].push_back(std::move(tensor)); });
  }
  Item batch = std::move(items.front());
  size_t k = 0;
  nn::for_each_tensor(batch, [&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = join(columns[k]);
    ++k;
  });
  return batch;
}

}  // namespace detail

/// Makes a batch of items by stacking them: each tensor of the batch has one more dimension in
/// front, whose row i is the tensor of item i. Python:
/// `torch.utils.data.default_collate`.
struct Stack {
  bool pin_memory = false;  ///< stacks tensors of the CPU in pinned memory, which needs a GPU

  /// Returns the batch, of the items' own type.
  /// @throw c10::Error if the items' tensors differ in their sizes or number.
  template <class Item>
  Item operator()(std::vector<Item> items) const {
    return detail::join_items(std::move(items), [this](const std::vector<torch::Tensor>& column) {
      return tensors(column);
    });
  }

  /// Stacks tensors of one size. Python: `torch.stack`.
  torch::Tensor tensors(const std::vector<torch::Tensor>& tensors) const;
};

/// Makes a batch of items as `Stack` does, after each tensor `(L, ...)` was padded at the end of its
/// first dimension to the longest of the batch. Tensors without a dimension, as labels, are stacked.
/// Python: `torch.nn.utils.rnn.pad_sequence(..., batch_first=True)`.
struct PadSequence {
  double padding_value = 0;  ///< fills the places behind the shorter ones

  /// Returns the batch, of the items' own type.
  /// @throw c10::Error if the items' tensors differ in their number or in another dimension.
  template <class Item>
  Item operator()(std::vector<Item> items) const {
    return detail::join_items(std::move(items), [this](const std::vector<torch::Tensor>& column) {
      return tensors(column);
    });
  }

  /// Pads and stacks tensors.
  torch::Tensor tensors(const std::vector<torch::Tensor>& tensors) const;
};

}  // namespace sconce::data
