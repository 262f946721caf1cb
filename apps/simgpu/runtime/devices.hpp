#pragma once

#include <vector>

namespace simgpu {

/// Returns the machine-wide index of each GPU that is visible to the process.
const std::vector<int>& visible_gpus();

/// Returns a reference to the calling thread's device.
int& current_device();

/// Returns whether a GPU with this index exists.
bool is_device(int device);

/// Records that the GPU has been used and therefore has a context.
void make_context(int device);

/// Returns whether the GPU has been used.
bool has_context(int device);

/// Returns whether any GPU has been used.
bool has_any_context();

}  // namespace simgpu
