#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// Adds the memory of a strided tensor. A dense tensor is one range; a view with gaps is one range
/// for each row without a gap. If that results in more than 1024 rows, gaps within the innermost
/// dimensions count as used.
void add_accesses(std::vector<Access>& accesses, const at::Tensor& tensor, bool writes);

}  // namespace simgpu
