#pragma once

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

/// Registers the functions that operate directly on GPU tensors: the queries that determine whether
/// a GPU library supports an operator, which always return false here, and the function that
/// flattens recurrent weights.
void add_choosers(OwnKernels& kernels);

}  // namespace simgpu
