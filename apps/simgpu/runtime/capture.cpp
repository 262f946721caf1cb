#include "simgpu/runtime/capture.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto& at_work = *new std::vector<std::shared_ptr<Capture>>;
  return at_work;
}

using KeptMemory = std::map<uintptr_t, Capture::Kept>;

uintptr_t end_of(const KeptMemory::value_type& kept) {
  return kept.first + kept.second.bytes.size();
}

char* memory_at(uintptr_t address) {
  return static_cast<char*>(host_address(reinterpret_cast<const void*>(address)));
}

// Returns the first stored memory range that ends after the address.
KeptMemory::iterator find_kept(KeptMemory& memory, uintptr_t address) {
  auto found = memory.upper_bound(address);
  if (found != memory.begin() && end_of(*std::prev(found)) > address) --found;
  return found;
}

void swap_bytes(KeptMemory::value_type& memory) {
  auto& [address, kept] = memory;
  std::swap_ranges(kept.bytes.begin(), kept.bytes.end(), memory_at(address));
  kept.is_hidden = !kept.is_hidden;
}

// Hides the values that captured work has written to the memory, or makes them visible again.
void set_hidden(Capture& capture, const Access& access, bool is_hidden) {
  const auto begin = reinterpret_cast<uintptr_t>(access.data);
  auto kept = find_kept(capture.kept, begin);
  for (; kept != capture.kept.end() && kept->first < begin + access.size; ++kept) {
    if (kept->second.is_hidden != is_hidden) swap_bytes(*kept);
  }
}

void show_alone(const Capture* shown, std::span<const Access> accesses) {
  for (const auto& capture : captures()) {
    for (const auto& access : accesses) set_hidden(*capture, access, capture.get() != shown);
  }
}

// Saves the contents of memory that is about to be overwritten, except for ranges that have already
// been saved.
void keep_memory(Capture& capture, const Access& access) {
  auto at = reinterpret_cast<uintptr_t>(access.data);
  const auto end = at + access.size;
  for (auto next = find_kept(capture.kept, at); at < end; ++next) {
    const auto gap_end = next == capture.kept.end() ? end : std::min(end, next->first);
    if (at < gap_end) {
      Capture::Kept kept{.bytes = {memory_at(at), memory_at(at) + (gap_end - at)}};
      next = capture.kept.emplace_hint(next, at, std::move(kept));
    }
    at = end_of(*next);
  }
}

void restore_memory(Capture& capture) {
  for (auto& memory : capture.kept) {
    if (!memory.second.is_hidden) swap_bytes(memory);
  }
  capture.kept.clear();
}

bool is_joined(const Capture& capture) {
  const auto& origin = capture.branches.at(capture.origin);
  return std::all_of(capture.branches.begin(), capture.branches.end(), [&](const auto& branch) {
    return branch.first == capture.origin || origin.seen.at(branch.first->id) >= branch.second.tick;
  });
}

}  // namespace

bool is_any_capturing() {
  return !captures().empty();
}

bool invalidate_capture(Stream& stream) {
  if (!stream.capture) return false;
  stream.capture->is_valid = false;
  return true;
}

cudaStreamCaptureMode& capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

bool is_refused_by_captures() {
  const auto mode = capture_mode();
  if (mode == cudaStreamCaptureModeRelaxed) return false;
  bool is_refused = false;
  for (const auto& capture : captures()) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    const bool disturbs = is_own ? capture->mode != cudaStreamCaptureModeRelaxed
                                 : mode == cudaStreamCaptureModeGlobal &&
                                       capture->mode == cudaStreamCaptureModeGlobal;
    if (!disturbs) continue;
    capture->is_valid = false;
    is_refused = true;
  }
  return is_refused;
}

cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode) {
  static unsigned long long num_captures = 0;
  if (stream.is_default) return fail(cudaErrorStreamCaptureUnsupported);
  if (stream.capture) return fail(cudaErrorIllegalState);
  use(stream);
  drain(stream);
  auto capture = std::make_shared<Capture>();
  capture->id = ++num_captures;
  capture->mode = mode;
  capture->origin = &stream;
  capture->branches[&stream] = {};
  stream.capture = capture;
  captures().push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t end_capture(Stream& stream, std::unique_ptr<Graph>& graph) {
  const auto capture = stream.capture;
  if (!capture) return fail(cudaErrorIllegalState);
  if (capture->origin != &stream) {
    capture->is_valid = false;
    return fail(cudaErrorStreamCaptureUnmatched);
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return fail(cudaErrorStreamCaptureWrongThread);
  }
  for (const auto& branch : capture->branches) branch.first->capture = nullptr;
  capture->is_ended = true;
  std::erase(captures(), capture);
  restore_memory(*capture);
  graph = std::move(capture->graph);
  graph->memories = follow_memory(*graph->works);
  if (!capture->is_valid) return fail(cudaErrorStreamCaptureInvalidated);
  return is_joined(*capture) ? cudaSuccess : fail(cudaErrorStreamCaptureUnjoined);
}

void hide_captured(std::span<const Access> accesses) {
  show_alone(nullptr, accesses);
}

void begin_captured_work(Stream& stream, const Work& work) {
  auto& capture = *stream.capture;
  auto& branch = capture.branches[&stream];
  branch.seen.set(stream.id, ++branch.tick);
  show_alone(&capture, work.accesses);
  for (const auto& access : work.accesses) {
    if (access.writes) keep_memory(capture, access);
  }
  check_accesses(capture.history, {&stream, branch.tick, work.label, requested_at()}, branch.seen,
                 work.accesses.data(), work.accesses.size());
}

void record_captured_event(Event& event, Stream& stream) {
  const auto& branch = stream.capture->branches[&stream];
  event.stream = &stream;
  event.tick = branch.tick;
  event.seen = branch.seen;
}

cudaError_t wait_for_captured_event(Stream& stream, const Event& event) {
  if (event.capture->is_ended) return fail(cudaErrorCapturedEvent);
  if (stream.capture && stream.capture != event.capture) {
    stream.capture->is_valid = event.capture->is_valid = false;
    return fail(cudaErrorStreamCaptureMerge);
  }
  if (stream.is_default) {
    event.capture->is_valid = false;
    return fail(cudaErrorStreamCaptureImplicit);
  }
  if (!stream.capture) {
    use(stream);
    drain(stream);
    stream.capture = event.capture;
  }
  event.capture->branches[&stream].seen.join(event.seen);
  return cudaSuccess;
}

}  // namespace simgpu
