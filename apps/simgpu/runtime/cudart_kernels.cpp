#include <cuda_runtime_api.h>

#include <cxxabi.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/work.hpp"

// CUDA's kernels, which are registered while LibTorch is loaded and cannot run. That of
// torch.cuda._sleep has nothing to do.

namespace simgpu {

namespace {

struct RegisteredKernel {
  const void* function = nullptr;
  const char* name = nullptr;
};

std::vector<RegisteredKernel>& registered_kernels() {
  static auto& kernels = *new std::vector<RegisteredKernel>;
  return kernels;
}

std::string demangle(const char* name) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = status == 0 ? demangled : name;
  std::free(demangled);
  return text;
}

std::string kernel_name(const void* function) {
  const auto& kernels = registered_kernels();
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const auto& kernel) { return kernel.function == function; });
  return found == kernels.end() ? "of a library" : demangle(found->name);
}

cudaError_t refuse_kernel(const void* function) {
  static auto& refused = *new std::set<const void*>;
  const Lock lock;
  if (refused.insert(function).second) {
    std::fprintf(stderr, "simulated GPUs: the CUDA kernel %s cannot run\n",
                 kernel_name(function).c_str());
  }
  return fail(cudaErrorNotSupported);
}

bool takes_time_alone(const void* function) {
  const Lock lock;
  return kernel_name(function) == "at::cuda::(anonymous namespace)::spin_kernel(long)";
}

cudaError_t launch_kernel(const void* function, cudaStream_t stream) {
  if (!takes_time_alone(function)) return refuse_kernel(function);
  take_time(stream, "at::cuda::sleep");
  return cudaSuccess;
}

cudaError_t refuse_kernel_query() {
  return fail(cudaErrorInvalidDeviceFunction);
}

}  // namespace

}  // namespace simgpu

#pragma GCC visibility push(default)

extern "C" {

// The compiler declares these in code for GPUs only.
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const simgpu::Lock lock;
  simgpu::registered_kernels().push_back({.function = function, .name = name});
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t,
                               cudaStream_t stream) {
  return simgpu::launch_kernel(kernel, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void**, size_t,
                             cudaStream_t stream) {
  return simgpu::launch_kernel(function, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* function, void**) {
  return simgpu::refuse_kernel(function);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3, dim3, void**, size_t,
                                        cudaStream_t) {
  return simgpu::refuse_kernel(function);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return simgpu::refuse_kernel_query();
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return simgpu::refuse_kernel_query();
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t, cudaFuncAttribute, int, int) {
  return simgpu::refuse_kernel_query();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t) {
  return simgpu::refuse_kernel_query();
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int*, const void*, int, size_t,
                                                                   unsigned) {
  return simgpu::refuse_kernel_query();
}

}  // extern "C"

#pragma GCC visibility pop
