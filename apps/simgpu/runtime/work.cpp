#include "simgpu/runtime/work.hpp"

#include <stdexcept>
#include <utility>

#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/fault_handler.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/thread_work.hpp"

namespace simgpu {

namespace {

void check_process() {
  if (is_unusable_fork()) {
    throw std::runtime_error("simulated GPUs: a GPU was in use before this process was forked");
  }
  throw_kept_race();
}

// Runs the earlier copies in the stream, unless another thread is going to run them.
void begin_uncaptured(Stream& stream, const Work& work, bool is_replay, bool is_of_thread) {
  if (!is_replay && !work.is_continued) count_work(stream, work.label);
  advance(stream);
  if (!is_of_thread) drain(stream);
  check_accesses(access_history(), {&stream, stream.tick, work.label, requested_at(), is_replay},
                 stream.seen, work.accesses.data(), work.accesses.size());
  hide_captured(work.accesses);
}

void begin(cudaStream_t handle, const Work& work, bool is_replay) {
  keep_fault_handler();
  wait_for_threads(handle);
  note_place();
  const Lock lock;
  check_process();
  auto& stream = find_stream(handle);
  if (stream.capture) return begin_captured_work(stream, work);
  begin_uncaptured(stream, work, is_replay, false);
}

}  // namespace

bool is_capturing(cudaStream_t handle) {
  const Lock lock;
  return find_stream(handle).capture != nullptr;
}

void begin_work(cudaStream_t stream, const Work& work) {
  begin(stream, work, false);
}

void begin_replayed_work(cudaStream_t stream, const Work& work) {
  begin(stream, work, true);
}

WorkBefore begin_work_of_thread(cudaStream_t handle, const Work& work) {
  if (is_capturing(handle)) {
    begin_work(handle, work);
    return {};
  }
  keep_fault_handler();
  note_place();
  const Lock lock;
  check_process();
  auto& stream = find_stream(handle);
  begin_uncaptured(stream, work, false, true);
  return {&stream, stream.tick - 1};
}

void record(cudaStream_t handle, Work work) {
  const Lock lock;
  auto& stream = find_stream(handle);
  if (stream.capture) stream.capture->graph->works->push_back(std::move(work));
}

void take_time(cudaStream_t handle, const char* label) {
  keep_fault_handler();
  const Lock lock;
  check_process();
  auto& stream = find_stream(handle);
  if (stream.capture) {
    begin_captured_work(stream, {.label = label});
    return record(handle, {.label = label, .run = [] {}});
  }
  count_work(stream, label);
  advance(stream);
}

bool wait_for_host(cudaStream_t handle) {
  return cudaStreamSynchronize(handle) == cudaSuccess;
}

}  // namespace simgpu
