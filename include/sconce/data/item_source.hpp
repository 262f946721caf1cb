#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sconce/data/dataset.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce::data {

namespace detail {

template <class S>
concept GetsItem = requires(const S& source, int64_t index) { source.get(index); };

template <class S>
concept DrawsItem = requires(const S& source, int64_t index, const at::Generator& generator) {
  source.get(index, generator);
};

template <class S>
struct ItemOf {};
template <GetsItem S>
struct ItemOf<S> {
  using type = std::remove_cvref_t<decltype(std::declval<const S&>().get(0))>;
};
template <DrawsItem S>
  requires(!GetsItem<S>)
struct ItemOf<S> {
  using type = std::remove_cvref_t<decltype(std::declval<const S&>().get(
      0, std::declval<const at::Generator&>()))>;
};

}  // namespace detail

/// A dataset that is read item by item. `size()` returns the number of items, and `get(index)`
/// returns the item at `index`. A source that draws random numbers defines `get(index, generator)`,
/// which loaders call instead. The `size` and `get` functions are const and may be called
/// concurrently from several threads. An item may have any type in which `nn::TensorTree` finds
/// tensors: a tensor, a pair or tuple of tensors, a `Dataset` with the `data` and `target` of one
/// row, or your own struct.
/// Python: `torch.utils.data.Dataset` with `__len__` and `__getitem__`.
template <class S>
concept ItemSource = requires(const S& source) {
  { source.size() } -> std::convertible_to<int64_t>;
  typename detail::ItemOf<S>::type;
} && nn::TensorTree<typename detail::ItemOf<S>::type>::any;

/// A `torch::data` dataset whose `get_batch` accepts indices. Each thread reads from a separate
/// copy, because `get` and `get_batch` are not const.
template <class S>
concept TorchDataset = std::copyable<S> && requires(S& source, c10::ArrayRef<size_t> indices) {
  typename S::BatchType;
  { source.size() } -> std::convertible_to<std::optional<size_t>>;
  source.get_batch(indices);
};

/// A `TorchDataset` whose next pass continues where the previous pass stopped, such as
/// `torch::data::datasets::ChunkDataset`. Loaders reject a stateful dataset, because loaders read
/// rows in arbitrary order.
template <class S>
concept StatefulTorchDataset = requires { requires bool(S::is_stateful); };

}  // namespace sconce::data
