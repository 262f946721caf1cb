#pragma once

#include "simgpu/runtime/memory.hpp"

namespace simgpu {

/// Reports any work that may still be using pinned or registered memory that is about to be freed
/// or unregistered.
void check_freed_pinned_memory(const Block& block);

}  // namespace simgpu
