#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace simgpu {

using TensorMap = std::function<at::Tensor(const at::Tensor&)>;

/// Returns whether the tensor is sparse or nested, and therefore consists of strided tensors.
bool has_parts(const at::Tensor& tensor);

/// Returns a tensor with the same layout in which each part is replaced by f(part). The parts are
/// the indices and values, or the memory of a nested tensor.
/// @throw c10::Error for an unknown layout.
at::Tensor map_parts(const at::Tensor& tensor, const TensorMap& f);

/// Assigns the indices, values, and sizes from another sparse tensor on the same device.
void assign_sparse(const at::Tensor& to, const at::Tensor& from);

}  // namespace simgpu
