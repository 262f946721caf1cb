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

/// What a capture has made.
struct Graph {
  std::shared_ptr<std::vector<Work>> works = std::make_shared<std::vector<Work>>();
  std::vector<std::shared_ptr<void>> user_objects = {};
  std::shared_ptr<const GraphMemories> memories = {};  ///< once the capture has ended
};

/// Makes a graph of the work of some streams. Kernels need results to go on, so the work is done
/// during the capture too. Work that is not captured finds what the memory held without it, and so
/// does everybody from the capture's end on.
struct Capture {
  /// A stream's part in the capture. Captured work races only with work of the same capture.
  struct Branch {
    uint64_t tick = 0;
    Clock seen = {};
  };
  /// Memory that captured work has written.
  struct Kept {
    std::vector<char> bytes = {};  ///< that the memory would hold without it, or if hidden with it
    bool is_hidden = false;        ///< what captured work has written
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
  std::map<uintptr_t, Kept> kept = {};  ///< by address, each apart from the others
};

/// Whether any stream is part of a capture.
bool is_any_capturing();

/// Invalidates the stream's capture. Returns false if there is none.
bool invalidate_capture(Stream& stream);

/// Whether a call that may disturb captures, such as cudaMalloc, is refused: in the calling
/// thread's mode, by the captures at work, which it invalidates.
bool is_refused_by_captures();

/// The calling thread's mode, which may be set.
cudaStreamCaptureMode& capture_mode();

/// Begins a capture on the stream.
cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode);

/// Ends the capture that began on the stream, and restores the memory. The graph is returned even
/// if the capture has failed, to be destroyed without the lock: that frees memory of LibTorch's.
cudaError_t end_capture(Stream& stream, std::unique_ptr<Graph>& graph);

/// Lets the memory hold what it would hold without the captures at work, for work that is not
/// captured.
void hide_captured(std::span<const Access> accesses);

/// Begins a piece of captured work.
/// @throw std::runtime_error in a race within the capture, if races are to be thrown.
void begin_captured_work(Stream& stream, const Work& work);

/// Does `begin_work` for a piece of a graph that is launched.
/// @throw std::runtime_error in a race, if races are to be thrown.
void begin_replayed_work(cudaStream_t stream, const Work& work);

/// Lets the captured event be the present end of the stream's branch.
void record_captured_event(Event& event, Stream& stream);

/// Lets the stream wait for an event of a capture, which it joins.
cudaError_t wait_for_captured_event(Stream& stream, const Event& event);

}  // namespace simgpu
