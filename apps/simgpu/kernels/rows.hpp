#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// Adds the memory of a strided tensor: a dense tensor is one range, a view with gaps is one for
/// each row without a gap. Where that makes more than 1024 rows, the gaps within its innermost
/// dimensions count as used.
void add_accesses(std::vector<Access>& accesses, const at::Tensor& tensor, bool writes);

}  // namespace simgpu
