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

/// Creates a graph from the work on one or more streams. Because kernels need results to continue,
/// the work also runs during the capture. Uncaptured work sees the memory as if the captured work
/// had not run. After the capture ends, the same is true for all other work.
struct Capture {
  /// A stream's branch of the capture. Captured work can race only with other work in the same
  /// capture.
  struct Branch {
    uint64_t tick = 0;
    Clock seen = {};
  };
  /// Memory that captured work has written to.
  struct Kept {
    std::vector<char> bytes = {};  ///< contents before that work, or after it if hidden
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

/// Invalidates the stream's capture. Returns false if the stream is not being captured.
bool invalidate_capture(Stream& stream);

/// Returns whether the active captures forbid a call that may interfere with them, such as
/// cudaMalloc, given the calling thread's mode. If they do, the captures are invalidated.
bool is_refused_by_captures();

/// Returns a reference to the calling thread's mode.
cudaStreamCaptureMode& capture_mode();

/// Begins a capture on the stream.
cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode);

/// Ends the capture that began on the stream, and restores the memory. Returns the graph even if
/// the capture failed. The graph must be destroyed without holding the lock, because destroying it
/// frees LibTorch's memory.
cudaError_t end_capture(Stream& stream, std::unique_ptr<Graph>& graph);

/// For uncaptured work, restores the contents that the memory would have had without the active
/// captures.
void hide_captured(std::span<const Access> accesses);

/// Begins a piece of captured work.
/// @throw std::runtime_error for a race within the capture, if races are configured to throw.
void begin_captured_work(Stream& stream, const Work& work);

/// Like `begin_work`, but for a piece of work in a launched graph.
/// @throw std::runtime_error for a race, if races are configured to throw.
void begin_replayed_work(cudaStream_t stream, const Work& work);

/// Sets the captured event to the current end of the stream's branch.
void record_captured_event(Event& event, Stream& stream);

/// Makes the stream wait for an event in a capture, which adds the stream to the capture.
cudaError_t wait_for_captured_event(Stream& stream, const Event& event);

}  // namespace simgpu
