#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

// The names that light headers need, without the weight of <torch/torch.h>. A header that holds a
// tensor by value also includes <ATen/core/Tensor.h>.

namespace at {
class Tensor;
}  // namespace at

namespace torch {
using at::Tensor;
using c10::Device;
using c10::DeviceType;
using c10::ScalarType;

namespace nn {
class Module;
}  // namespace nn

namespace optim {
class Optimizer;
}  // namespace optim
}  // namespace torch
