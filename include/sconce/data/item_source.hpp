#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sconce/nn/nested_tensors.hpp"

namespace torch::data {
template <typename Data, typename Target>
struct Example;
}  // namespace torch::data

namespace sconce::data {

namespace detail {

template <class S>
concept GetsItem = requires(const S& source, int64_t index) {
  source.get(index);
};

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
struct ItemOf<S> {
  using type = std::remove_cvref_t<decltype(
      std::declval<const S&>().get(0, std::declval<const at::Generator&>()))>;
};

}  // namespace detail

/// Gives the items of a data set one by one: `size()` is their number, and `get(index)` or, for one
/// that draws random numbers, `get(index, generator)` returns one. Both are const and are called
/// from several threads at once. An item is of any type in which `nn::NestedTensors` finds tensors:
/// a tensor, a pair or tuple of them, a `Dataset` with one row's `data` and `target`, a struct of
/// one's own. Python: `torch.utils.data.Dataset`, with `__len__` and `__getitem__`.
template <class S>
concept ItemSource = requires(const S& source) {
  { source.size() } -> std::convertible_to<int64_t>;
  typename detail::ItemOf<S>::type;
} && nn::NestedTensors<typename detail::ItemOf<S>::type>::any;

/// A dataset of `torch::data` whose `get_batch` takes indices. Its `get` and `get_batch` are not
/// const, so each thread that reads it has a copy.
template <class S>
concept TorchDataset = std::copyable<S> && requires(S& source, c10::ArrayRef<size_t> indices) {
  typename S::BatchType;
  { source.size() } -> std::convertible_to<std::optional<size_t>>;
  source.get_batch(indices);
};

/// A `TorchDataset` that goes on from where it was, as `torch::data::datasets::ChunkDataset`; a
/// loader, which asks for any row at any time, refuses it.
template <class S>
concept StatefulTorchDataset = requires { requires bool(S::is_stateful); };

}  // namespace sconce::data

template <class Data, class Target>
struct sconce::nn::NestedTensors<torch::data::Example<Data, Target>>
    : sconce::nn::TensorMembers<&torch::data::Example<Data, Target>::data,
                                &torch::data::Example<Data, Target>::target> {};

template <class Data>
struct sconce::nn::NestedTensors<torch::data::Example<Data, void>>
    : sconce::nn::TensorMembers<&torch::data::Example<Data, void>::data> {};
