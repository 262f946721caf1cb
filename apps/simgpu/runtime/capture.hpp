#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "simgpu/runtime/event.hpp"
#include "simgpu/runtime/graph_memory.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/stream.hpp"

namespace simgpu {

/// The result of a capture.
struct Graph {
  std::shared_ptr<std::vector<Work>> works = std::make_shared<std::vector<Work>>();
  std::vector<std::shared_ptr<void>> user_objects = {};
  std::shared_ptr<const GraphMemories> memories = {};  ///< set once the capture has ended
};

/// Creates a graph from the work of some streams. Kernels need results to continue, so the work
/// also runs during the capture. Uncaptured work sees the memory as if the captured work had not
/// run, and after the capture ends, so does everything else.
struct Capture {
  /// A stream's part in the capture. Captured work can race only with work of the same capture.
  struct Branch {
    uint64_t tick = 0;
    Clock seen = {};
  };
  /// Memory that captured work has written.
  struct Kept {
    std::vector<char> bytes = {};  ///< the contents without that work; if hidden, with it
    bool is_hidden = false;        ///< whether the results of captured work are hidden
  };

  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread = std::this_thread::get_id();
  Stream* origin = nullptr;
  bool is_valid = true;
  bool is_ended = false;
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::map<Stream*, Branch> branches = {};
  AccessHistory history = {};
  std::map<uintptr_t, Kept> kept = {};  ///< by address, without overlaps
};

/// Returns whether any stream is part of a capture.
bool is_any_capturing();

/// Invalidates the stream's capture. Returns false if there is none.
bool invalidate_capture(Stream& stream);

/// Returns whether the active captures forbid a call that may disturb them, such as cudaMalloc,
/// given the calling thread's mode. If so, invalidates them.
bool is_refused_by_captures();

/// Returns a reference to the calling thread's mode.
cudaStreamCaptureMode& capture_mode();

/// Begins a capture on the stream.
cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode);

/// Ends the capture that began on the stream, and restores the memory. Returns the graph even if
/// the capture failed. Destroy it without holding the lock, because that frees LibTorch's memory.
cudaError_t end_capture(Stream& stream, std::unique_ptr<Graph>& graph);

/// Restores the contents that the memory would have without the active captures, for uncaptured
/// work.
void hide_captured(std::span<const Access> accesses);

/// Begins a piece of captured work.
/// @throw std::runtime_error for a race within the capture, if races are thrown.
void begin_captured_work(Stream& stream, const Work& work);

/// Does the same as `begin_work`, for a piece of a launched graph.
/// @throw std::runtime_error for a race, if races are thrown.
void begin_replayed_work(cudaStream_t stream, const Work& work);

/// Sets the captured event to the current end of the stream's branch.
void record_captured_event(Event& event, Stream& stream);

/// Makes the stream wait for an event of a capture. The stream joins the capture.
cudaError_t wait_for_captured_event(Stream& stream, const Event& event);

}  // namespace simgpu
