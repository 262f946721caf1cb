#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace simgpu {

using TensorMap = std::function<at::Tensor(const at::Tensor&)>;

/// Whether the tensor is sparse or nested: made of strided tensors.
bool has_parts(const at::Tensor& tensor);

/// Returns the tensor of the same layout made of f(part) for each part: indices and values, or the
/// memory of a nested tensor.
/// @throw c10::Error for a layout that it does not know.
at::Tensor map_parts(const at::Tensor& tensor, const TensorMap& f);

/// Gives a sparse tensor the indices, values and sizes of another one of the same device.
void assign_sparse(const at::Tensor& to, const at::Tensor& from);

}  // namespace simgpu
