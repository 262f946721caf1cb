#pragma once

#include <string_view>
#include <vector>

namespace simgpu {

/// Returns the GPUs that a value of CUDA_VISIBLE_DEVICES leaves to the process, by CUDA's rules: an
/// index that does not exist hides itself and those after it, a repeated index hides all.
std::vector<int> visible_gpus(std::string_view indices, int num_gpus);

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
