#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <string>

// Forward declarations that keep <torch/torch.h> out of light headers. A header that stores a
// tensor by value also includes <ATen/core/Tensor.h>.

namespace at {
class Tensor;
}  // namespace at

namespace torch {
using at::Tensor;
using c10::Device;
using c10::DeviceType;
using c10::ScalarType;

template <typename Key, typename Value>
class OrderedDict;  // <torch/ordered_dict.h>

namespace nn {
class Module;
}  // namespace nn

namespace optim {
class Optimizer;
}  // namespace optim
}  // namespace torch

namespace sconce {

/// An ordered mapping from names to tensors.
/// Python: the return type of `module.state_dict()`.
using StateDict = torch::OrderedDict<std::string, torch::Tensor>;

}  // namespace sconce
