#pragma once

#include "simgpu/runtime/memory.hpp"

namespace simgpu {

/// Names the work that may still use pinned or registered memory that is about to be freed or
/// unregistered.
void check_freed_pinned_memory(const Block& block);

}  // namespace simgpu
