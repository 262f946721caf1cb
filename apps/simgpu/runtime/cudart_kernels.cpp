#include <cuda_runtime_api.h>

#include <cxxabi.h>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/user_kernels.hpp"
#include "simgpu/runtime/work.hpp"

// CUDA kernels, which libraries register while being loaded. The kernels cannot run on simulated
// GPUs, with two exceptions: kernels for which the program provides a CPU function, and the
// torch.cuda._sleep kernel, which computes nothing.

namespace simgpu {

namespace {

// The names of the kernels, indexed by the addresses used to launch them.
std::map<const void*, const char*>& registered_kernels() {
  static auto& kernels = *new std::map<const void*, const char*>;
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
  const Lock lock;
  const auto found = registered_kernels().find(function);
  return found == registered_kernels().end() ? "of a library" : demangle(found->second);
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

cudaError_t launch_kernel(const void* function, dim3 grid, dim3 block, void** arguments,
                          size_t shared_bytes, cudaStream_t stream) {
  if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  const auto name = kernel_name(function);
  const simgpu_launch launch{{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes};
  if (launch_user_kernel(name, launch, arguments, stream)) return cudaSuccess;
  if (name != "at::cuda::(anonymous namespace)::spin_kernel(long)") return refuse_kernel(function);
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

// The compiler declares these functions only in GPU code.
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
  if (name == nullptr) return;
  const simgpu::Lock lock;
  simgpu::registered_kernels().insert_or_assign(function, name);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  if (kernel == nullptr) return simgpu::fail(cudaErrorInvalidValue);
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return simgpu::launch_kernel(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return simgpu::launch_kernel(function, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* launch, const void* function,
                                void** arguments) {
  if (launch == nullptr) return simgpu::fail(cudaErrorInvalidValue);
  return simgpu::launch_kernel(function, launch->gridDim, launch->blockDim, arguments,
                               launch->dynamicSmemBytes, launch->stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared_bytes,
                                        cudaStream_t stream) {
  return simgpu::launch_kernel(function, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return simgpu::refuse_kernel_query();
}

// Handles requests for more shared memory, which a CPU function does not need.
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int) {
  if (simgpu::has_user_kernel(simgpu::kernel_name(function))) return cudaSuccess;
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
