#pragma once

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

/// Adds functions that operate directly on GPU tensors: the queries whether a GPU library supports
/// an operator, which always return false here, and the flattening of recurrent weights.
void add_choosers(OwnKernels& kernels);

}  // namespace simgpu
