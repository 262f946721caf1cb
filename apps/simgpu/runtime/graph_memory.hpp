#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// Memory that a graph uses and that was not allocated in a capture: its owner has to keep it for
/// the replays.
struct GraphMemory {
  Access access = {};
  const char* label = "";
  int device = 0;
  bool is_freed = false;  ///< LibTorch's allocator has it back
};
using GraphMemories = std::vector<GraphMemory>;

/// Returns such memory of captured work, and follows what is freed while somebody owns the result.
std::shared_ptr<GraphMemories> follow_memory(const std::vector<Work>& works);

/// Tells that LibTorch's allocator has taken back memory.
void mark_freed_memory(const Access& freed);

/// Names memory that was freed before the graph's replay.
/// @return cudaErrorIllegalAddress if the GPU itself has it back.
/// @throw std::runtime_error if LibTorch's allocator has it, and races are to be thrown.
cudaError_t check_memory(const GraphMemories& memories);

}  // namespace simgpu
