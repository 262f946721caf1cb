#pragma once

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

/// Adds what works on tensors of a GPU itself: questions whether a library of the GPU does an
/// operator, which none does here, and the flattening of recurrent weights.
void add_choosers(OwnKernels& kernels);

}  // namespace simgpu
