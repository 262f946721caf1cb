#pragma once

#include <vector>

namespace simgpu {

/// Returns the GPUs that CUDA_VISIBLE_DEVICES makes visible to the process. As in CUDA, an invalid
/// index hides all GPUs from that entry on, and a repeated index hides all GPUs. If the variable is
/// not set, all GPUs are visible.
std::vector<int> find_visible_gpus(int num_gpus);

}  // namespace simgpu
