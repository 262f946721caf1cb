#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/stream.hpp"

// What LibTorch calls of CUDA's runtime: captures and graphs.

namespace simgpu {

namespace {

// A graph that can be launched. Its launches follow each other.
struct ExecutableGraph {
  Graph graph = {};
  Event last_launch = {};
};

// What graphs keep alive for the user.
struct UserObject {
  void* data = nullptr;
  cudaHostFn_t destroy = nullptr;
  unsigned references = 0;
};

Graph* graph_of(cudaGraph_t handle) {
  return reinterpret_cast<Graph*>(handle);
}

ExecutableGraph* graph_of(cudaGraphExec_t handle) {
  return reinterpret_cast<ExecutableGraph*>(handle);
}

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->is_valid ? cudaStreamCaptureStatusActive
                                  : cudaStreamCaptureStatusInvalidated;
}

void release(UserObject* object, unsigned count) {
  {
    const Lock lock;
    object->references -= count;
    if (object->references > 0) return;
  }
  object->destroy(object->data);
  delete object;
}

// A capturing stream takes the works into its own graph.
cudaError_t launch(ExecutableGraph& graph, cudaStream_t handle) {
  std::shared_ptr<std::vector<Work>> works;
  {
    const Lock lock;
    if (const auto error = check_memory(*graph.graph.memories); error != cudaSuccess) return error;
    works = graph.graph.works;
    auto& stream = find_stream(handle);
    if (!stream.capture) {
      count_replay();
      order_after(stream, graph.last_launch);
    }
  }
  for (const auto& work : *works) {
    begin_replayed_work(handle, work);
    work.run();
    if (is_capturing(handle)) record(handle, work);
  }
  const Lock lock;
  auto& stream = find_stream(handle);
  if (!stream.capture) record_event(graph.last_launch, stream);
  return cudaSuccess;
}

}  // namespace

}  // namespace simgpu

using simgpu::fail;
using simgpu::find_stream;
using simgpu::graph_of;
using simgpu::Lock;

#pragma GCC visibility push(default)

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, simgpu::capture_mode());
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const Lock lock;
  *status = simgpu::status_of(find_stream(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* num_dependencies) {
  const Lock lock;
  const auto& stream = find_stream(handle);
  *status = simgpu::status_of(stream);
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (num_dependencies != nullptr) *num_dependencies = 0;
  if (!stream.capture) return cudaSuccess;
  if (id != nullptr) *id = stream.capture->id;
  if (graph != nullptr) *graph = reinterpret_cast<cudaGraph_t>(stream.capture->graph.get());
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  simgpu::wait_for_threads(stream);
  const Lock lock;
  return simgpu::begin_capture(find_stream(stream), mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::unique_ptr<simgpu::Graph> made;
  const Lock lock;
  const auto error = simgpu::end_capture(find_stream(stream), made);
  *graph = error == cudaSuccess ? reinterpret_cast<cudaGraph_t>(made.release()) : nullptr;
  return error;
}

// Only the number of nodes is known; nodes themselves have no handles.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return simgpu::refuse("cudaGraphGetNodes");
  *count = graph_of(graph)->works->size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (graph == nullptr) return fail(cudaErrorInvalidValue);
  auto* made = new simgpu::ExecutableGraph{.graph = *graph_of(graph)};
  *executable = reinterpret_cast<cudaGraphExec_t>(made);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return simgpu::launch(*graph_of(executable), stream);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph_of(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete graph_of(executable);
  return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned references, unsigned) {
  *object = reinterpret_cast<cudaUserObject_t>(
      new simgpu::UserObject{.data = data, .destroy = destroy, .references = references});
  return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  simgpu::release(reinterpret_cast<simgpu::UserObject*>(object), count);
  return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count,
                                      unsigned flags) {
  auto* object = reinterpret_cast<simgpu::UserObject*>(handle);
  const Lock lock;
  if ((flags & cudaGraphUserObjectMove) == 0) object->references += count;
  const auto release = [count](void* kept) {
    simgpu::release(static_cast<simgpu::UserObject*>(kept), count);
  };
  graph_of(graph)->user_objects.push_back(std::shared_ptr<void>(object, release));
  return cudaSuccess;
}

}  // extern "C"

#pragma GCC visibility pop
