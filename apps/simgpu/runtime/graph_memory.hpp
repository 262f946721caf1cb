#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// Memory that a graph uses but that was not allocated during a capture. Its owner must keep it
/// allocated for the replays.
struct GraphMemory {
  Access access = {};
  const char* label = "";
  int device = 0;
  bool is_freed = false;  ///< whether it was returned to LibTorch's allocator
};
using GraphMemories = std::vector<GraphMemory>;

/// Returns the memory of this kind that the captured work uses. While the result exists, tracks
/// which parts of this memory are freed.
std::shared_ptr<GraphMemories> follow_memory(const std::vector<Work>& works);

/// Records that memory was returned to LibTorch's allocator.
void mark_freed_memory(const Access& freed);

/// Reports memory that was freed before the graph is replayed.
/// @return cudaErrorIllegalAddress if the memory was returned to the GPU itself.
/// @throw std::runtime_error if the memory was returned to LibTorch's allocator and races are
/// configured to throw.
cudaError_t check_memory(const GraphMemories& memories);

}  // namespace simgpu
