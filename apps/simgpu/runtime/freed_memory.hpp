#pragma once

#include "simgpu/runtime/memory.hpp"

namespace simgpu {

/// Names the work that may still use pinned or registered memory, which is about to be given back.
void check_freed_pinned_memory(const Block& block);

}  // namespace simgpu
