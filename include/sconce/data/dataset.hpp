#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>

#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace torch::data {
template <typename Data, typename Target>
struct Example;
}  // namespace torch::data

namespace sconce::data {

/// A pair of tensors that represents an entire dataset, a batch, or an item. Row i of `data`
/// corresponds to row i of `target`. `torch::data::Example<>` is accepted wherever a `Dataset` is.
/// Python: `torch.utils.data.TensorDataset(data, target)`.
struct Dataset {
  /// Inputs of shape `(N, ...)`, of any type and on any device.
  torch::Tensor data = {};

  /// Expected outputs of shape `(N, ...)`, on the same device as `data`. Class labels are int64
  /// tensors of shape `(N,)`.
  torch::Tensor target = {};
};

namespace detail {

// Satisfied only by the type `torch::data::Example<>`.
template <class T>
concept TorchExample = std::same_as<T, torch::data::Example<at::Tensor, at::Tensor>>;

}  // namespace detail

}  // namespace sconce::data

template <>
struct sconce::nn::TensorTree<sconce::data::Dataset>
    : sconce::nn::TensorMembers<&sconce::data::Dataset::data, &sconce::data::Dataset::target> {};

template <class Data, class Target>
struct sconce::nn::TensorTree<torch::data::Example<Data, Target>>
    : sconce::nn::TensorMembers<&torch::data::Example<Data, Target>::data,
                                &torch::data::Example<Data, Target>::target> {};

template <class Data>
struct sconce::nn::TensorTree<torch::data::Example<Data, void>>
    : sconce::nn::TensorMembers<&torch::data::Example<Data, void>::data> {};
