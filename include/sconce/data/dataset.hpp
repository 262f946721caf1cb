#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce::data {

/// A data set held whole in two tensors, or one batch of it: row i of `data` belongs to row i of
/// `target`. Python: `torch.utils.data.TensorDataset(data, target)`.
struct Dataset {
  /// The inputs, (N, ...), of any type and on any device.
  torch::Tensor data = {};

  /// What the model should answer, (N, ...), on the device of `data`; classes are (N,) int64.
  torch::Tensor target = {};
};

}  // namespace sconce::data

template <>
struct sconce::nn::NestedTensors<sconce::data::Dataset>
    : sconce::nn::TensorMembers<&sconce::data::Dataset::data, &sconce::data::Dataset::target> {};
