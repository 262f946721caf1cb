#include "simgpu/runtime/graph_memory.hpp"

#include <set>
#include <string>
#include <tuple>

#include "simgpu/runtime/memory.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/races.hpp"

namespace simgpu {

namespace {

std::vector<std::weak_ptr<GraphMemories>>& followed() {
  static auto& all = *new std::vector<std::weak_ptr<GraphMemories>>;
  return all;
}

std::string describe_freed(const GraphMemory& memory) {
  return std::string("simulated GPUs: during a graph replay, ") + memory.label +
         (memory.access.writes ? " writes " : " reads ") + std::to_string(memory.access.size) +
         " bytes of " +
         (memory.device == pinned ? "pinned memory" : "cuda:" + std::to_string(memory.device)) +
         ", which were freed after the capture";
}

bool is_held(const GraphMemory& memory) {
  return find_block(memory.access.data) != nullptr &&
         is_accessible(memory.access.data, memory.access.size);
}

}  // namespace

std::shared_ptr<GraphMemories> follow_memory(const std::vector<Work>& works) {
  auto memories = std::make_shared<GraphMemories>();
  std::set<std::tuple<const void*, size_t, bool>> known;
  for (const auto& work : works) {
    for (const auto& access : work.accesses) {
      const auto* block = find_block(access.data);
      if (block == nullptr || block->is_of_capture || access.size == 0) continue;
      if (!known.emplace(access.data, access.size, access.writes).second) continue;
      memories->push_back({access, work.label, block->device});
    }
  }
  std::erase_if(followed(), [](const auto& graph) { return graph.expired(); });
  followed().push_back(memories);
  return memories;
}

void mark_freed_memory(const Access& freed) {
  for (const auto& graph : followed()) {
    const auto memories = graph.lock();
    if (!memories) continue;
    for (auto& memory : *memories) {
      memory.is_freed = memory.is_freed || overlap(memory.access, freed);
    }
  }
}

cudaError_t check_memory(const GraphMemories& memories) {
  for (const auto& memory : memories) {
    if (!is_held(memory)) {
      write_once(describe_freed(memory));
      return fail(cudaErrorIllegalAddress);
    }
    if (memory.is_freed) report_race(describe_freed(memory));
  }
  return cudaSuccess;
}

}  // namespace simgpu
