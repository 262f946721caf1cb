#pragma once

#include <vector>

namespace simgpu {

/// Returns the index in the machine of each GPU that the process sees.
const std::vector<int>& visible_gpus();

/// The calling thread's device, which may be set.
int& current_device();

/// Whether there is a GPU of this number.
bool is_device(int device);

/// Tells that something was asked of the GPU, so that it has a context.
void make_context(int device);

/// Whether something was asked of the GPU.
bool has_context(int device);

/// Whether something was asked of any GPU.
bool has_any_context();

}  // namespace simgpu
