#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce::data {

namespace detail {

// Combines items with the same number of tensors into a batch. To produce the k-th tensor of the
// batch, calls `collate.tensors` with the k-th tensor of each item.
template <class Item, class Collate>
Item join_items(std::vector<Item> items, const Collate& collate) {
  static_assert(nn::TensorTree<Item>::only,
                "sconce::data: expected items that contain only tensors; pass a custom collate "
                "function for other items");
  std::vector<std::vector<torch::Tensor>> columns;
  nn::for_each_tensor(items.front(), [&](torch::Tensor& tensor) {
    columns.emplace_back().reserve(items.size());
    columns.back().push_back(tensor);
  });
  for (size_t i = 1; i < items.size(); ++i) {
    TORCH_CHECK(nn::TensorTree<Item>::alike(items[i], items.front()),
                "sconce::data: expected items with the same lengths, keys, and undefined tensors "
                "as item 0 of the batch, got different ones in item ",
                i);
    size_t k = 0;
    nn::for_each_tensor(items[i],
                        [&](torch::Tensor& tensor) { columns[k++].push_back(std::move(tensor)); });
  }
  Item batch = std::move(items.front());
  size_t k = 0;
  nn::for_each_tensor(batch, [&](torch::Tensor& tensor) {
    if (tensor.defined()) tensor = collate.tensors(columns[k]);
    ++k;
  });
  return batch;
}

}  // namespace detail

/// Collates items into a batch by stacking their tensors. Each tensor of the batch has a new first
/// dimension, and row i is the corresponding tensor from item i.
/// Python: `torch.utils.data.default_collate`.
struct Stack {
  bool pin_memory = false;  ///< whether to allocate batches in pinned memory, which requires a GPU

  /// Returns the batch, which has the same type as the items.
  /// @throw c10::Error if the items contain different numbers of tensors or tensors of different
  /// shapes.
  template <class Item>
  Item operator()(std::vector<Item> items) const {
    return detail::join_items(std::move(items), *this);
  }

  /// Stacks tensors of the same shape. `pin_memory` pins the result if the tensors are on the CPU,
  /// share a single type, and do not require gradients. Python: `torch.stack`.
  /// @throw c10::Error if the shapes differ.
  torch::Tensor tensors(const std::vector<torch::Tensor>& tensors) const;
};

/// Collates items like `Stack`, but first pads each tensor of shape `(L, ...)` at the end of its
/// first dimension to the length of the longest tensor in the batch. Zero-dimensional tensors, such
/// as labels, are stacked without padding.
/// Python: `torch.nn.utils.rnn.pad_sequence(..., batch_first=True)`.
struct PadSequence {
  double padding_value = 0;  ///< value of padded elements

  /// Returns the batch, which has the same type as the items.
  /// @throw c10::Error if:
  /// - the items contain different numbers of tensors;
  /// - corresponding tensors differ in any dimension except the first.
  template <class Item>
  Item operator()(std::vector<Item> items) const {
    return detail::join_items(std::move(items), *this);
  }

  /// Pads and stacks the tensors.
  /// @throw c10::Error if they differ in any dimension except the first.
  torch::Tensor tensors(const std::vector<torch::Tensor>& tensors) const;
};

}  // namespace sconce::data
