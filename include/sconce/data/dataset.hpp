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
struct sconce::nn::NestedTensors<sconce::data::Dataset> {
  static constexpr bool any = true;
  static constexpr bool only = true;
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    f(value.data);
    f(value.target);
  }
  static bool alike(const data::Dataset& a, const data::Dataset& b) {
    return a.data.defined() == b.data.defined() && a.target.defined() == b.target.defined();
  }
};
