#pragma once

#include <vector>

namespace simgpu {

/// Returns the machine's GPUs that CUDA_VISIBLE_DEVICES makes visible to the process. As in CUDA,
/// an invalid index hides itself and all GPUs after it, and a repeated index hides all GPUs. If the
/// variable is not set, all GPUs are visible.
std::vector<int> find_visible_gpus(int num_gpus);

}  // namespace simgpu
