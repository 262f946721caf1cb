#include <cuda_runtime_api.h>

#include <cstring>

#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/copies.hpp"
#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/devices.hpp"
#include "simgpu/runtime/fault_handler.hpp"
#include "simgpu/runtime/freed_memory.hpp"
#include "simgpu/runtime/memory.hpp"
#include "simgpu/runtime/place.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/settings.hpp"

// The memory and copy functions that LibTorch calls in the CUDA runtime.

namespace simgpu {

namespace {

cudaError_t check_memory_call() {
  keep_fault_handler();
  if (is_unusable_fork()) return fail(cudaErrorInitializationError);
  if (num_gpus() == 0) return fail(cudaErrorNoDevice);
  make_context(current_device());
  if (is_refused_by_captures()) return fail(cudaErrorStreamCaptureUnsupported);
  return cudaSuccess;
}

Block* find_block_at(void* data) {
  auto* block = find_block(data);
  return block != nullptr && block->begin == reinterpret_cast<uintptr_t>(data) ? block : nullptr;
}

// Waits for all GPUs, as CUDA does.
void free_after_all_work(Block* block) {
  count_host_wait("cudaFree");
  for (auto* stream : used_streams()) {
    if (stream != nullptr) wait_on_host(*stream);
  }
  access_history().forget(reinterpret_cast<const void*>(block->begin), block->size);
  free_block(block);
}

cudaError_t allocate_pinned(void** data, size_t size) {
  if (data == nullptr) return fail(cudaErrorInvalidValue);
  const Lock lock;
  const auto error = check_memory_call();
  return error == cudaSuccess ? allocate_pinned_memory(data, size) : error;
}

cudaError_t free_memory(void* data, bool is_pinned) {
  if (data == nullptr) return cudaSuccess;
  wait_for_threads_of_all_streams();
  const Lock lock;
  if (const auto error = check_memory_call(); error != cudaSuccess) return error;
  auto* block = find_block_at(data);
  if (block == nullptr || block->is_registered || (block->device == pinned) != is_pinned) {
    return fail(cudaErrorInvalidValue);
  }
  if (is_pinned) check_freed_pinned_memory(*block);
  free_after_all_work(block);
  return cudaSuccess;
}

cudaError_t copy_on(cudaStream_t handle, void* to, const void* from, size_t size,
                    cudaMemcpyKind kind) {
  if (!is_stream(handle)) return fail(cudaErrorInvalidResourceHandle);
  keep_fault_handler();
  wait_for_threads(handle);
  const Lock lock;
  if (is_unusable_fork()) return fail(cudaErrorInitializationError);
  throw_kept_race();
  const auto error = copy_async(find_stream(handle), to, from, size, kind);
  throw_kept_race();
  return error;
}

}  // namespace

}  // namespace simgpu

using simgpu::fail;
using simgpu::Lock;

#pragma GCC visibility push(default)

extern "C" {

cudaError_t cudaMalloc(void** data, size_t size) {
  if (data == nullptr) return fail(cudaErrorInvalidValue);
  const Lock lock;
  if (const auto error = simgpu::check_memory_call(); error != cudaSuccess) return error;
  simgpu::count_allocation(size);
  return simgpu::allocate_gpu_memory(data, size, simgpu::current_device(),
                                     simgpu::is_any_capturing());
}

cudaError_t cudaFree(void* data) {
  return simgpu::free_memory(data, false);
}

cudaError_t cudaHostAlloc(void** data, size_t size, unsigned) {
  return simgpu::allocate_pinned(data, size);
}

cudaError_t cudaMallocHost(void** data, size_t size) {
  return simgpu::allocate_pinned(data, size);
}

cudaError_t cudaFreeHost(void* data) {
  return simgpu::free_memory(data, true);
}

cudaError_t cudaHostRegister(void* data, size_t size, unsigned) {
  const Lock lock;
  const auto error = simgpu::check_memory_call();
  return error == cudaSuccess ? simgpu::register_memory(data, size) : error;
}

cudaError_t cudaHostUnregister(void* data) {
  simgpu::wait_for_threads_of_all_streams();
  const Lock lock;
  if (const auto error = simgpu::check_memory_call(); error != cudaSuccess) return error;
  auto* block = simgpu::find_block_at(data);
  if (block == nullptr || !block->is_registered) return fail(cudaErrorHostMemoryNotRegistered);
  simgpu::check_freed_pinned_memory(*block);
  simgpu::free_after_all_work(block);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return fail(cudaErrorInvalidValue);
  const Lock lock;
  *total = simgpu::settings().memory;
  *free = *total - simgpu::used_memory(simgpu::current_device());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  if (attributes == nullptr) return fail(cudaErrorInvalidValue);
  const Lock lock;
  *attributes = {};
  attributes->device = simgpu::current_device();
  const auto* block = simgpu::find_block(data);
  if (block == nullptr) {
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(data);
  } else if (block->device == simgpu::pinned) {
    attributes->type = cudaMemoryTypeHost;
    attributes->devicePointer = attributes->hostPointer = const_cast<void*>(data);
  } else {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = block->device;
    attributes->devicePointer = const_cast<void*>(data);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  simgpu::note_place();
  return simgpu::copy_on(stream, to, from, size, kind);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size,
                                cudaStream_t stream) {
  simgpu::note_place();
  return simgpu::copy_on(stream, to, from, size, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  simgpu::note_place();
  simgpu::wait_for_threads(nullptr);
  const Lock lock;
  if (simgpu::is_refused_by_captures()) return fail(cudaErrorStreamCaptureUnsupported);
  const auto error = simgpu::copy_on(nullptr, to, from, size, kind);
  if (error != cudaSuccess) return error;
  simgpu::count_host_wait("cudaMemcpy");
  simgpu::wait_on_host(simgpu::find_stream(nullptr));
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  if (!simgpu::is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  if (size == 0) return cudaSuccess;
  {
    const Lock lock;
    const bool is_known = simgpu::find_block(to) != nullptr;
    if (!is_known || !simgpu::is_accessible(to, size)) return fail(cudaErrorInvalidValue);
  }
  simgpu::Work work{.label = "a memset", .accesses = {{to, size, true}}};
  work.run = [target = simgpu::host_address(to), value, size] { std::memset(target, value, size); };
  simgpu::begin_work(stream, work);
  work.run();
  simgpu::record(stream, std::move(work));
  return cudaSuccess;
}

cudaError_t cudaMemset(void* to, int value, size_t size) {
  {
    const Lock lock;
    if (simgpu::is_refused_by_captures()) return fail(cudaErrorStreamCaptureUnsupported);
  }
  return cudaMemsetAsync(to, value, size, nullptr);
}

}  // extern "C"

#pragma GCC visibility pop
