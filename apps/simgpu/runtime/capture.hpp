#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "simgpu/runtime/event.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/stream.hpp"

namespace simgpu {

/// What a capture has made.
struct Graph {
  std::shared_ptr<std::vector<Work>> works = std::make_shared<std::vector<Work>>();
  std::vector<std::shared_ptr<void>> user_objects = {};
};

/// Makes a graph of the work of some streams. Kernels need results to go on, so the work is done
/// during the capture too; the capture's end restores what it has overwritten.
struct Capture {
  /// A stream's part in the capture. Captured work races only with work of the same capture.
  struct Branch {
    uint64_t tick = 0;
    Clock seen = {};
  };
  struct Kept {
    void* data = nullptr;
    std::vector<char> bytes = {};
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
  std::vector<Kept> kept = {};
  std::map<const void*, size_t> kept_sizes = {};
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
