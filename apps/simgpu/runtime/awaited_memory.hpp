#pragma once

#include <cstddef>

namespace simgpu {

/// Takes the rights from pinned memory that a late copy is to write, so that its use by the host is
/// seen. The memory beside it in its pages can be used.
void guard_awaited(const void* data, size_t size);

/// Gives the memory its rights back. The copy is about to be done, or somebody else uses it.
void release_awaited(const void* data, size_t size);

/// Called where the host has touched memory without rights. Returns false if this is not memory
/// that a late copy is to write. Otherwise reports the use, and the memory can be used.
bool take_awaited_fault(const void* address, bool is_write);

}  // namespace simgpu
