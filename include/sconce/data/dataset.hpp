#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce::data {

/// A data set held in two tensors, or one batch of it. Row i of `data` belongs to row i of
/// `target`. Python: `torch.utils.data.TensorDataset(data, target)`.
struct Dataset {
  /// Inputs `(N, ...)`, of any type and on any device.
  torch::Tensor data = {};

  /// Expected outputs `(N, ...)`, on the device of `data`. Class labels are int64 `(N,)`.
  torch::Tensor target = {};
};

}  // namespace sconce::data

template <>
struct sconce::nn::NestedTensors<sconce::data::Dataset>
    : sconce::nn::TensorMembers<&sconce::data::Dataset::data, &sconce::data::Dataset::target> {};
