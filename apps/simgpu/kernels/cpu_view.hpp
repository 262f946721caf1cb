#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace simgpu {

/// Returns the number of bytes from the start of a strided tensor's first element to the end of its
/// last element.
size_t extent(const at::Tensor& tensor);

/// Returns a CPU tensor that shares the memory of a strided GPU tensor without owning it.
at::Tensor view_on_cpu(const at::Tensor& tensor, bool writes);

}  // namespace simgpu
