#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace simgpu {

/// Returns the bytes from a strided tensor's first element to the end of its last one.
size_t extent(const at::Tensor& tensor);

/// Returns a tensor of the CPU with the memory of a GPU's strided tensor, which it does not own.
at::Tensor view_on_cpu(const at::Tensor& tensor, bool writes);

}  // namespace simgpu
