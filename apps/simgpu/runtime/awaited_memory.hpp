#pragma once

#include <cstddef>

namespace simgpu {

/// Removes the access rights to pinned memory that a late copy will write, so that host accesses
/// are noticed. Other memory in the same pages stays usable.
void guard_awaited(const void* data, size_t size);

/// Restores the access rights, because the copy is about to run or the memory is used otherwise.
void release_awaited(const void* data, size_t size);

/// Called when the host has accessed memory without rights. Returns false if no late copy will
/// write this memory. Otherwise, reports the access and makes the memory accessible.
bool take_awaited_fault(const void* address, bool is_write);

}  // namespace simgpu
