#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/handle_set.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/stream.hpp"

// The capture and graph functions that LibTorch calls in the CUDA runtime.

namespace simgpu {

namespace {

// An executable graph. Launches of the same graph run one at a time.
struct ExecutableGraph {
  Graph graph = {};
  Event last_launch = {};
};

// An object that graphs keep alive on behalf of the user.
struct UserObject {
  void* data = nullptr;
  cudaHostFn_t destroy = nullptr;
  unsigned references = 0;
};

template <class T>
HandleSet<T>& handles_of() {
  static auto& all = *new HandleSet<T>;
  return all;
}

// Returns nullptr if there is no such graph or if it is still being captured.
Graph* find_graph(cudaGraph_t handle) {
  for (const auto* stream : used_streams()) {
    if (stream == nullptr || !stream->capture) continue;
    auto* const graph = stream->capture->graph.get();
    if (graph != nullptr && reinterpret_cast<cudaGraph_t>(graph) == handle) return graph;
  }
  return handles_of<Graph>().find(handle);
}

// Destroys the object without holding the lock, because freeing the objects that a graph keeps
// alive may call functions in the program.
template <class T>
cudaError_t destroy(const void* handle) {
  std::unique_ptr<T> object;
  {
    const Lock lock;
    object = handles_of<T>().take(handle);
  }
  return object ? cudaSuccess : fail(cudaErrorInvalidValue);
}

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->is_valid ? cudaStreamCaptureStatusActive
                                  : cudaStreamCaptureStatusInvalidated;
}

cudaError_t release(const void* handle, unsigned count) {
  std::unique_ptr<UserObject> last;
  {
    const Lock lock;
    auto* const object = handles_of<UserObject>().find(handle);
    if (object == nullptr || count > object->references) return fail(cudaErrorInvalidValue);
    object->references -= count;
    if (object->references == 0) last = handles_of<UserObject>().take(handle);
  }
  if (last) last->destroy(last->data);
  return cudaSuccess;
}

// A stream that is being captured adds the work to its own graph.
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
using simgpu::handles_of;
using simgpu::Lock;

#pragma GCC visibility push(default)

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return fail(cudaErrorInvalidValue);
  std::swap(*mode, simgpu::capture_mode());
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  if (status == nullptr) return fail(cudaErrorInvalidValue);
  const Lock lock;
  if (!simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  *status = simgpu::status_of(find_stream(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* num_dependencies) {
  if (status == nullptr) return fail(cudaErrorInvalidValue);
  const Lock lock;
  if (!simgpu::is_stream(handle)) return fail(cudaErrorInvalidResourceHandle);
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
  if (!simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  simgpu::wait_for_threads(stream);
  const Lock lock;
  return simgpu::begin_capture(find_stream(stream), mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (graph == nullptr) return fail(cudaErrorInvalidValue);
  std::unique_ptr<simgpu::Graph> made;
  const Lock lock;
  if (!simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  const auto error = simgpu::end_capture(find_stream(stream), made);
  *graph = nullptr;
  if (error != cudaSuccess) return error;
  *graph = reinterpret_cast<cudaGraph_t>(handles_of<simgpu::Graph>().add(std::move(made)));
  return cudaSuccess;
}

// Only the number of nodes is available, because the nodes themselves have no handles.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return simgpu::refuse("cudaGraphGetNodes");
  const Lock lock;
  const auto* const found = simgpu::find_graph(graph);
  if (found == nullptr || count == nullptr) return fail(cudaErrorInvalidValue);
  *count = found->works->size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  const Lock lock;
  const auto* const found = handles_of<simgpu::Graph>().find(graph);
  if (found == nullptr || executable == nullptr) return fail(cudaErrorInvalidValue);
  auto made = std::make_unique<simgpu::ExecutableGraph>();
  made->graph = *found;
  *executable =
      reinterpret_cast<cudaGraphExec_t>(handles_of<simgpu::ExecutableGraph>().add(std::move(made)));
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  simgpu::ExecutableGraph* found = nullptr;
  {
    const Lock lock;
    found = handles_of<simgpu::ExecutableGraph>().find(executable);
  }
  if (found == nullptr) return fail(cudaErrorInvalidValue);
  if (!simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  return simgpu::launch(*found, stream);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return simgpu::destroy<simgpu::Graph>(graph);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return simgpu::destroy<simgpu::ExecutableGraph>(executable);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* data, cudaHostFn_t destroy,
                                 unsigned references, unsigned) {
  if (object == nullptr || destroy == nullptr || references == 0) {
    return fail(cudaErrorInvalidValue);
  }
  auto made = std::make_unique<simgpu::UserObject>();
  *made = {.data = data, .destroy = destroy, .references = references};
  const Lock lock;
  *object =
      reinterpret_cast<cudaUserObject_t>(handles_of<simgpu::UserObject>().add(std::move(made)));
  return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return simgpu::release(object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t handle, unsigned count,
                                      unsigned flags) {
  const Lock lock;
  auto* const found = simgpu::find_graph(graph);
  auto* const object = handles_of<simgpu::UserObject>().find(handle);
  if (found == nullptr || object == nullptr) return fail(cudaErrorInvalidValue);
  if ((flags & cudaGraphUserObjectMove) == 0) object->references += count;
  const auto release = [count](void* kept) { simgpu::release(kept, count); };
  found->user_objects.push_back(std::shared_ptr<void>(object, release));
  return cudaSuccess;
}

}  // extern "C"

#pragma GCC visibility pop
