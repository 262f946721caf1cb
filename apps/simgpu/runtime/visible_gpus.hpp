#pragma once

#include <vector>

namespace simgpu {

/// Returns which of the machine's GPUs CUDA_VISIBLE_DEVICES leaves to the process, by CUDA's rules:
/// an index that does not exist hides itself and those after it, a repeated index hides all. Unset,
/// it leaves all of them.
std::vector<int> find_visible_gpus(int num_gpus);

}  // namespace simgpu
