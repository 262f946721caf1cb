#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// Adds the memory of a strided tensor. A dense tensor is added as one range. A view with gaps is
/// added as one range for each contiguous row. If that would result in more than 1024 rows, gaps
/// within the innermost dimensions are treated as used.
void add_accesses(std::vector<Access>& accesses, const at::Tensor& tensor, bool writes);

}  // namespace simgpu
