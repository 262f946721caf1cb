#include <cuda_runtime_api.h>

#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/devices.hpp"
#include "simgpu/runtime/fault_handler.hpp"
#include "simgpu/runtime/handle_set.hpp"
#include "simgpu/runtime/host_clock.hpp"
#include "simgpu/runtime/pinned_sources.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/work.hpp"

// The stream and event functions that LibTorch calls in the CUDA runtime.

namespace simgpu {

namespace {

// The number of queries that report work as unfinished if the host has not waited for the work. The
// next query completes the work. LibTorch also issues queries internally, for example after a
// collective. These internal queries do not count as waits by the program.
constexpr int queries_until_done = 50;

HandleSet<Event>& events() {
  static auto& all = *new HandleSet<Event>;
  return all;
}

// Returns nullptr if there is no such event.
Event* event_of(cudaEvent_t handle) {
  const Lock lock;
  return events().find(handle);
}

// Calls the function with the stream while holding the lock.
template <class Function>
cudaError_t with_stream(cudaStream_t handle, const Function& function) {
  const Lock lock;
  if (!is_stream(handle)) return fail(cudaErrorInvalidResourceHandle);
  return function(find_stream(handle));
}

// Calls the function with the event while holding the lock.
template <class Function>
cudaError_t with_event(cudaEvent_t handle, const Function& function) {
  const Lock lock;
  auto* const event = events().find(handle);
  return event != nullptr ? function(*event) : fail(cudaErrorInvalidResourceHandle);
}

cudaError_t make_stream(cudaStream_t* handle, unsigned flags, int priority) {
  if (handle == nullptr) return fail(cudaErrorInvalidValue);
  const Lock lock;
  if (is_unusable_fork()) return fail(cudaErrorInitializationError);
  if (num_gpus() == 0) return fail(cudaErrorNoDevice);
  *handle = create_stream(flags, priority);
  return cudaSuccess;
}

cudaError_t synchronize_stream(Stream& stream) {
  if (is_unusable_fork()) return fail(cudaErrorInitializationError);
  if (invalidate_capture(stream)) return fail(cudaErrorStreamCaptureUnsupported);
  count_host_wait("cudaStreamSynchronize");
  wait_on_host(stream);
  return cudaSuccess;
}

cudaError_t query_stream(Stream& stream) {
  if (invalidate_capture(stream)) return fail(cudaErrorStreamCaptureUnsupported);
  if (find_unready(stream).valid()) return fail(cudaErrorNotReady);
  const bool is_known = host_clock().includes(stream.seen);
  if (!is_known && stream.queries++ < queries_until_done) return fail(cudaErrorNotReady);
  stream.queries = 0;
  wait_on_host(stream);
  return cudaSuccess;
}

cudaError_t make_event(cudaEvent_t* handle, unsigned flags) {
  if (handle == nullptr) return fail(cudaErrorInvalidValue);
  if (is_unusable_fork()) return fail(cudaErrorInitializationError);
  auto event = std::make_unique<Event>();
  event->device = current_device();
  event->has_timing = (flags & cudaEventDisableTiming) == 0;
  const Lock lock;
  *handle = reinterpret_cast<cudaEvent_t>(events().add(std::move(event)));
  return cudaSuccess;
}

cudaError_t record_on_stream(Event& event, Stream& stream) {
  if (event.device != stream.device) return fail(cudaErrorInvalidResourceHandle);
  event.capture = stream.capture;
  if (stream.capture) {
    record_captured_event(event, stream);
  } else {
    record_event(event, stream);
  }
  return cudaSuccess;
}

cudaError_t wait(Stream& stream, const Event& event) {
  if (event.stream == nullptr) return cudaSuccess;
  if (event.capture) return wait_for_captured_event(stream, event);
  if (invalidate_capture(stream)) return fail(cudaErrorStreamCaptureIsolation);
  order_after(stream, event);
  return cudaSuccess;
}

// If the stream joins a capture, blocks until other threads have finished the stream's work.
// Otherwise, this call does not block.
void wait_for_threads_to_join(cudaStream_t handle, const Event& event) {
  wait_until_ready([&] {
    const auto& stream = find_stream(handle);
    const bool joins = event.capture && !stream.capture;
    return joins ? find_unready(stream) : std::shared_future<void>();
  });
}

cudaError_t refuse_captured(const Event& event) {
  event.capture->is_valid = false;
  return fail(cudaErrorCapturedEvent);
}

cudaError_t query_event(Event& event) {
  if (event.capture) return refuse_captured(event);
  if (is_refused_by_captures()) return fail(cudaErrorStreamCaptureUnsupported);
  if (is_waiting_for_thread(event)) return fail(cudaErrorNotReady);
  const bool is_known = host_clock().includes(event.seen);
  if (!is_known && event.queries++ < queries_until_done) return fail(cudaErrorNotReady);
  wait_on_host(event);
  return cudaSuccess;
}

// When this function is called, the host knows that all earlier work is done.
void check_sources_of(cudaStream_t handle) {
  const Lock lock;
  const auto& stream = find_stream(handle);
  if (!stream.capture) check_sources(stream.seen);
}

void call_on_host(cudaStream_t stream, const char* label, std::function<void()> function) {
  Work work{.label = label, .run = std::move(function)};
  begin_work(stream, work);
  check_sources_of(stream);
  work.run();
  record(stream, std::move(work));
}

cudaError_t elapsed_time(float* milliseconds, const Event& from, const Event& to) {
  if (from.stream == nullptr || to.stream == nullptr || !from.has_timing || !to.has_timing ||
      from.device != to.device) {
    return fail(cudaErrorInvalidResourceHandle);
  }
  const auto& known = host_clock();
  if (!known.includes(from.seen) || !known.includes(to.seen)) return fail(cudaErrorNotReady);
  *milliseconds = static_cast<float>(static_cast<double>(to.time_ns - from.time_ns) / 1e6);
  return cudaSuccess;
}

}  // namespace

}  // namespace simgpu

using simgpu::Event;
using simgpu::event_of;
using simgpu::fail;
using simgpu::find_stream;
using simgpu::Lock;
using simgpu::Stream;
using simgpu::with_event;
using simgpu::with_stream;

#pragma GCC visibility push(default)

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return simgpu::make_stream(stream, flags, priority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return simgpu::make_stream(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return simgpu::make_stream(stream, cudaStreamDefault, 0);
}

// The stream's work continues, and race reports may still refer to the stream.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return with_stream(stream, [](const Stream&) { return cudaSuccess; });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  if (priority == nullptr) return fail(cudaErrorInvalidValue);
  return with_stream(stream, [&](const Stream& found) {
    *priority = found.priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  simgpu::keep_fault_handler();
  simgpu::wait_for_threads(stream);
  const Lock lock;
  return simgpu::synchronize_stream(find_stream(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return with_stream(stream, simgpu::query_stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if ((flags & cudaEventWaitExternal) != 0) return simgpu::refuse("cudaEventWaitExternal");
  const auto* const found = event_of(event);
  if (found == nullptr || !simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  simgpu::wait_for_threads_to_join(stream, *found);
  const Lock lock;
  return simgpu::wait(find_stream(stream), *found);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (function == nullptr) return fail(cudaErrorInvalidValue);
  if (!simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  simgpu::call_on_host(stream, "a host function", [function, data] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  if (callback == nullptr) return fail(cudaErrorInvalidValue);
  const auto error = with_stream(stream, [](Stream& found) {
    return simgpu::invalidate_capture(found) ? fail(cudaErrorStreamCaptureUnsupported)
                                             : cudaSuccess;
  });
  if (error != cudaSuccess) return error;
  simgpu::call_on_host(stream, "a callback", [=] { callback(stream, cudaSuccess, data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if ((flags & cudaEventInterprocess) != 0) return simgpu::refuse("cudaEventInterprocess");
  return simgpu::make_event(event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return simgpu::make_event(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock;
  return simgpu::events().take(event) ? cudaSuccess : fail(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return with_event(event, [&](Event& found) {
    return with_stream(stream, [&](Stream& on) { return simgpu::record_on_stream(found, on); });
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if ((flags & cudaEventRecordExternal) != 0) return simgpu::refuse("cudaEventRecordExternal");
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  const auto* const event = event_of(handle);
  if (event == nullptr) return fail(cudaErrorInvalidResourceHandle);
  simgpu::keep_fault_handler();
  simgpu::wait_for_threads(*event);
  const Lock lock;
  if (event->capture) return simgpu::refuse_captured(*event);
  simgpu::count_host_wait("cudaEventSynchronize");
  simgpu::wait_on_host(*event);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return with_event(event, simgpu::query_event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (milliseconds == nullptr) return fail(cudaErrorInvalidValue);
  return with_event(from, [&](const Event& begin) {
    return with_event(
        to, [&](const Event& end) { return simgpu::elapsed_time(milliseconds, begin, end); });
  });
}

}  // extern "C"

#pragma GCC visibility pop
