#include "simgpu/runtime/freed_memory.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "simgpu/runtime/graph_memory.hpp"
#include "simgpu/runtime/host_clock.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

std::string describe_user(const User& user) {
  return " are freed while " + std::string(user.label) + " on " + describe(*user.stream) +
         at(user.place) + " may still use the memory";
}

void report_freed(const Block& block, size_t size, const std::vector<Conflict>& uses) {
  for (const auto& use : uses) {
    report_race_later("simulated GPUs: " + std::to_string(size) +
                      " bytes of memory on cuda:" + std::to_string(block.device) +
                      describe_user(use.user) + ": record_stream is missing");
  }
}

}  // namespace

void check_freed_pinned_memory(const Block& block) {
  const auto* data = reinterpret_cast<const void*>(block.begin);
  for (const auto& use : access_history().find_unordered({data, block.size}, host_clock())) {
    report_race_later("simulated GPUs: " + std::to_string(block.size) + " bytes of " +
                      std::string(block.is_registered ? "registered" : "pinned") + " memory" +
                      describe_user(use.user));
  }
}

void on_freed(const void* data, size_t size, cudaStream_t handle, bool is_of_pool) {
  if (settings().races == RaceMode::off || size == 0) return;
  const Lock lock;
  const auto* block = find_block(data);
  // Memory allocated during a capture is returned to a pool reserved for captures, and the replays
  // of these captures run in order.
  if (block == nullptr || block->device == pinned || block->is_of_capture) return;
  if (!is_of_pool) mark_freed_memory({data, size});
  const auto& stream = find_stream(handle, block->device);
  if (stream.capture) return;
  if (settings().races != RaceMode::strict) return access_history().mark_freed(data, size);
  auto seen = stream.seen;
  seen.join(host_clock());
  auto uses = access_history().find_unordered({data, size}, seen);
  // A graph's memory must outlive its launches, and launches do not call record_stream. If other
  // work reuses the memory too early, that work races with the launches.
  std::erase_if(uses, [](const Conflict& use) { return use.user.is_replay; });
  if (uses.empty()) return;
  report_freed(*block, size, uses);
  std::memset(host_address(data), 0xFF, size);
  access_history().forget(data, size);
}

}  // namespace simgpu
