#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

#include "simgpu/runtime/devices.hpp"
#include "simgpu/runtime/process.hpp"

// The driver functions that LibTorch calls. LibTorch's library for kernels that are compiled at run
// time links to these functions, and LibTorch's allocator looks up other functions by name.

namespace simgpu {

namespace {

// Returns a placeholder for a device's context.
CUcontext some_context() {
  static int context = 0;
  return reinterpret_cast<CUcontext>(&context);
}

// Returns nullptr for a function that only the real driver provides.
void* own_function(const std::string& name) {
  Dl_info own = {};
  dladdr(reinterpret_cast<const void*>(&own_function), &own);
  void* self = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (self == nullptr) return nullptr;
  void* found = dlsym(self, name.c_str());
  Dl_info place = {};
  const bool is_own =
      found != nullptr && dladdr(found, &place) != 0 && place.dli_fbase == own.dli_fbase;
  dlclose(self);
  return is_own ? found : nullptr;
}

// Newer driver functions have a version suffix that callers omit.
void* function_of_driver(const std::string& name) {
  void* found = own_function(name);
  return found != nullptr ? found : own_function(name + "_v2");
}

}  // namespace

}  // namespace simgpu

#pragma GCC visibility push(default)

extern "C" {

CUresult cuInit(unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

// Reports that neither multicast nor a memory fabric is supported. LibTorch queries both.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is_active) {
  if (flags == nullptr || is_active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *is_active = simgpu::has_context(device) ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = simgpu::some_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = simgpu::some_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  const bool is_known = context == nullptr || context == simgpu::some_context();
  return is_known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGetErrorString(CUresult, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = "not supported by simulated GPUs";
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  if (name == nullptr || function == nullptr) return simgpu::fail(cudaErrorInvalidValue);
  *function = simgpu::function_of_driver(name);
  if (result != nullptr) {
    *result =
        *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}

}  // extern "C"

#pragma GCC visibility pop
