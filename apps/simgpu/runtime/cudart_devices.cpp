#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/counts.hpp"
#include "simgpu/runtime/devices.hpp"
#include "simgpu/runtime/fault_handler.hpp"
#include "simgpu/runtime/load_kernels.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/stream.hpp"

// The device and error functions that LibTorch calls in the CUDA runtime.

namespace simgpu {

namespace {

constexpr int compute_capability_major = 8;
constexpr int compute_capability_minor = 0;
constexpr int num_multiprocessors = 8;

int bus_of(int device) {
  return 1 + visible_gpus()[static_cast<size_t>(device)];
}

void describe_device(cudaDeviceProp& properties, int device) {
  std::snprintf(properties.name, sizeof properties.name, "Simulated GPU");
  std::memcpy(properties.uuid.bytes, "simulated GPU\0\0", 15);
  properties.uuid.bytes[15] = static_cast<char>(bus_of(device));
  properties.totalGlobalMem = settings().memory;
  properties.major = compute_capability_major;
  properties.minor = compute_capability_minor;
  properties.multiProcessorCount = num_multiprocessors;
  properties.pciBusID = bus_of(device);
  properties.l2CacheSize = 4 << 20;
  properties.unifiedAddressing = 1;
}

// The limits of compute capability 8.0, which LibTorch uses to compute launch sizes.
void describe_launches(cudaDeviceProp& properties) {
  properties.warpSize = 32;
  properties.regsPerBlock = properties.regsPerMultiprocessor = 65536;
  properties.sharedMemPerBlock = 49152;
  properties.sharedMemPerBlockOptin = 166912;
  properties.sharedMemPerMultiprocessor = 167936;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiProcessor = 2048;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = 1024;
  properties.maxThreadsDim[2] = 64;
  properties.maxGridSize[0] = 2147483647;
  properties.maxGridSize[1] = properties.maxGridSize[2] = 65535;
}

int attribute_of(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return compute_capability_major;
    case cudaDevAttrComputeCapabilityMinor:
      return compute_capability_minor;
    case cudaDevAttrMultiProcessorCount:
      return num_multiprocessors;
    default:
      return 0;
  }
}

cudaError_t synchronize_device() {
  count_host_wait("cudaDeviceSynchronize");
  for (auto* stream : used_streams()) {
    if (stream == nullptr || stream->device != current_device()) continue;
    if (invalidate_capture(*stream)) return fail(cudaErrorStreamCaptureUnsupported);
    wait_on_host(*stream);
  }
  return cudaSuccess;
}

}  // namespace

}  // namespace simgpu

using simgpu::fail;

#pragma GCC visibility push(default)

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return fail(cudaErrorInvalidValue);
  if (simgpu::is_unusable_fork()) return fail(cudaErrorInitializationError);
  simgpu::load_kernels();
  *count = simgpu::num_gpus();
  return *count == 0 ? fail(cudaErrorNoDevice) : cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return fail(cudaErrorInvalidValue);
  *device = simgpu::current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (simgpu::is_unusable_fork()) return fail(cudaErrorInitializationError);
  if (!simgpu::is_device(device)) return fail(cudaErrorInvalidDevice);
  simgpu::load_kernels();
  simgpu::current_device() = device;
  simgpu::make_context(device);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return fail(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return fail(cudaErrorInvalidValue);
  if (!simgpu::is_device(device)) return fail(cudaErrorInvalidDevice);
  simgpu::load_kernels();
  *properties = {};
  simgpu::describe_device(*properties, device);
  simgpu::describe_launches(*properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return fail(cudaErrorInvalidValue);
  if (!simgpu::is_device(device)) return fail(cudaErrorInvalidDevice);
  *value = simgpu::attribute_of(attribute);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  if (id == nullptr || size <= 0) return fail(cudaErrorInvalidValue);
  if (!simgpu::is_device(device)) return fail(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(size), "0000:%02x:00.0", simgpu::bus_of(device));
  return cudaSuccess;
}

// If peer access were reported, LibTorch would launch a kernel to copy between GPUs.
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return fail(cudaErrorInvalidValue);
  if (!simgpu::is_device(device) || !simgpu::is_device(peer)) return fail(cudaErrorInvalidDevice);
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return fail(cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  simgpu::keep_fault_handler();
  simgpu::wait_for_threads_of_all_streams();
  const simgpu::Lock lock;
  return simgpu::synchronize_device();
}

cudaError_t cudaGetLastError() {
  return std::exchange(simgpu::last_error(), cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return simgpu::last_error();
}

cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}

cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

}  // extern "C"

#pragma GCC visibility pop
