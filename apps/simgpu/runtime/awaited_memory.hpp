#pragma once

#include <cstddef>

namespace simgpu {

/// Removes the access rights to pinned memory that a late copy is going to write, so that accesses
/// by the host are detected. Other memory in the same pages remains usable.
void guard_awaited(const void* data, size_t size);

/// Restores the access rights, because the copy is about to run or the memory is being used for
/// something else.
void release_awaited(const void* data, size_t size);

/// Called when the host has accessed memory without access rights. Returns false if no late copy is
/// going to write this memory. Otherwise, reports the access and makes the memory accessible.
bool take_awaited_fault(const void* address, bool is_write);

}  // namespace simgpu
