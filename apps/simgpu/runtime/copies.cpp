#include "simgpu/runtime/copies.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "simgpu/runtime/awaited_memory.hpp"
#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/memory.hpp"
#include "simgpu/runtime/pinned_sources.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

enum class Kind { gpu, pinned_memory, pageable_memory };

Kind kind_of(const void* data) {
  const auto* block = find_block(data);
  if (block == nullptr) return Kind::pageable_memory;
  return block->device == pinned ? Kind::pinned_memory : Kind::gpu;
}

const char* label_of(Kind from, Kind to) {
  static constexpr const char* labels[3][3] = {
      {"a copy from a GPU to a GPU", "a copy from a GPU to pinned memory",
       "a copy from a GPU to the CPU"},
      {"a copy from pinned memory to a GPU", "a copy from pinned memory to pinned memory",
       "a copy from pinned memory to the CPU"},
      {"a copy from the CPU to a GPU", "a copy from the CPU to pinned memory",
       "a copy from the CPU to the CPU"}};
  return labels[static_cast<size_t>(from)][static_cast<size_t>(to)];
}

bool fits(cudaMemcpyKind kind, Kind from, Kind to) {
  if (kind == cudaMemcpyDefault) return true;
  const bool from_gpu = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool to_gpu = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  return from_gpu == (from == Kind::gpu) && to_gpu == (to == Kind::gpu);
}

// Runs earlier pending work that uses the memory about to be overwritten. Other work stays pending,
// because running it would hide a missing wait.
void drain_users(const Stream& stream, const Access& written) {
  for (auto* other : used_streams()) {
    if (other == nullptr) continue;
    uint64_t up_to = 0;
    for (const auto& work : other->pending) {
      const bool is_earlier = stream.seen.at(other->id) >= work.tick;
      const auto uses = [&](const Access& access) { return overlap(access, written); };
      if (is_earlier && std::any_of(work.accesses.begin(), work.accesses.end(), uses)) {
        up_to = work.tick;
      }
    }
    if (up_to > 0) drain(*other, up_to);
  }
}

// Returns whether a pending copy still has to write to any part of the memory.
bool is_awaited(const Access& memory) {
  const auto writes = [&](const Pending& work) { return overlap(work.accesses[1], memory); };
  return std::any_of(used_streams().begin(), used_streams().end(), [&](const Stream* stream) {
    return stream != nullptr && std::any_of(stream->pending.begin(), stream->pending.end(), writes);
  });
}

void copy_late(Stream& stream, void* to, const void* from, size_t size, Kind from_kind) {
  Pending late{.tick = stream.tick, .accesses = {{{from, size, false}, {to, size, true}}}};
  auto* target = host_address(to);
  const auto* source = static_cast<const char*>(host_address(from));
  if (from_kind == Kind::pageable_memory) {  // CUDA reads it before the call returns
    late.copy = [target, staged = std::vector<char>(source, source + size)] {
      release_awaited(target, staged.size());
      std::memcpy(target, staged.data(), staged.size());
    };
  } else {
    late.copy = [target, source, size] {
      release_awaited(target, size);
      release_awaited(source, size);
      std::memmove(target, source, size);
    };
  }
  drain_users(stream, late.accesses[1]);
  stream.pending.push_back(std::move(late));
  release_awaited(target, size);
  std::memset(target, 0xFF, size);
  if (!is_gpu_address(to)) guard_awaited(target, size);
}

cudaError_t capture_copy(Stream& stream, Work work, Kind from, Kind to) {
  if (from == Kind::pageable_memory || to == Kind::pageable_memory) {
    invalidate_capture(stream);
    return fail(cudaErrorStreamCaptureUnsupported);
  }
  begin_captured_work(stream, work);
  work.run();
  // The host can read pinned memory without calling CUDA.
  if (to == Kind::pinned_memory) hide_captured({&work.accesses.back(), 1});
  stream.capture->graph->works->push_back(std::move(work));
  return cudaSuccess;
}

}  // namespace

cudaError_t copy_async(Stream& stream, void* to, const void* from, size_t size,
                       cudaMemcpyKind kind) {
  if (size == 0) return cudaSuccess;
  const auto from_kind = kind_of(from);
  const auto to_kind = kind_of(to);
  if (!is_accessible(from, size) || !is_accessible(to, size) || !fits(kind, from_kind, to_kind)) {
    return fail(cudaErrorInvalidValue);
  }
  Work work{.label = label_of(from_kind, to_kind), .accesses = {{from, size}, {to, size, true}}};
  work.run = [target = host_address(to), source = host_address(from), size] {
    std::memmove(target, source, size);
  };
  if (stream.capture) return capture_copy(stream, std::move(work), from_kind, to_kind);
  count_copy(work.label, size);
  advance(stream);
  check_accesses(access_history(), {&stream, stream.tick, work.label, requested_at()}, stream.seen,
                 work.accesses.data(), work.accesses.size());
  hide_captured(work.accesses);
  if (from_kind == Kind::pinned_memory && to_kind == Kind::gpu && !is_awaited({from, size})) {
    watch_source(stream, {from, size});
  }
  if (settings().late_copies && to_kind != Kind::pageable_memory) {
    copy_late(stream, to, from, size, from_kind);
    return cudaSuccess;
  }
  drain(stream);
  work.run();
  if (to_kind == Kind::pageable_memory) {  // CUDA also waits in this case
    count_host_wait(work.label);
    wait_on_host(stream);
  }
  return cudaSuccess;
}

}  // namespace simgpu
