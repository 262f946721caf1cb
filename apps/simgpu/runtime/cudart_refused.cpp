#include <cuda_runtime_api.h>

#include "simgpu/runtime/process.hpp"

// What LibTorch calls of CUDA's runtime and simulated GPUs do not have. Undefined, the calls would
// reach the real runtime, which knows neither these GPUs nor their memory.

using simgpu::refuse;

#pragma GCC visibility push(default)

extern "C" {

cudaError_t cudaMallocAsync(void**, size_t, cudaStream_t) {
  return refuse("cudaMallocAsync");
}

cudaError_t cudaFreeAsync(void*, cudaStream_t) {
  return refuse("cudaFreeAsync");
}

cudaError_t cudaMallocManaged(void**, size_t, unsigned) {
  return refuse("cudaMallocManaged");
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int) {
  return refuse("cudaDeviceGetDefaultMemPool");
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return refuse("cudaMemPoolGetAttribute");
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return refuse("cudaMemPoolSetAttribute");
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return refuse("cudaMemPoolSetAccess");
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) {
  return refuse("cudaMemPoolTrimTo");
}

cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) {
  return refuse("cudaDeviceGetGraphMemAttribute");
}

cudaError_t cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) {
  return refuse("cudaDeviceSetGraphMemAttribute");
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  return refuse("cudaIpcGetMemHandle");
}

cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return refuse("cudaIpcOpenMemHandle");
}

cudaError_t cudaIpcCloseMemHandle(void*) {
  return refuse("cudaIpcCloseMemHandle");
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  return refuse("cudaIpcGetEventHandle");
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  return refuse("cudaIpcOpenEventHandle");
}

cudaError_t cudaMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, cudaMemcpyKind,
                              cudaStream_t) {
  return refuse("cudaMemcpy2DAsync");
}

cudaError_t cudaMemcpyToSymbol(const void*, const void*, size_t, size_t, cudaMemcpyKind) {
  return refuse("cudaMemcpyToSymbol");
}

cudaError_t cudaGetSymbolAddress(void**, const void*) {
  return refuse("cudaGetSymbolAddress");
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t, cudaGraph_t, const cudaGraphNode_t*,
                                          const cudaGraphEdgeData*, size_t, cudaStreamCaptureMode) {
  return refuse("cudaStreamBeginCaptureToGraph");
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t, cudaGraphNode_t*,
                                                const cudaGraphEdgeData*, size_t, unsigned) {
  return refuse("cudaStreamUpdateCaptureDependencies");
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                             const cudaGraphEdgeData*, size_t, cudaGraphNodeParams*) {
  return refuse("cudaGraphAddNode");
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle*, cudaGraph_t, unsigned,
                                             unsigned) {
  return refuse("cudaGraphConditionalHandleCreate");
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                         size_t*) {
  return refuse("cudaGraphNodeGetDependencies");
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return refuse("cudaLibraryLoadData");
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t*, const char*, cudaJitOption*, void**, unsigned,
                                    cudaLibraryOption*, void**, unsigned) {
  return refuse("cudaLibraryLoadFromFile");
}

cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  return refuse("cudaLibraryUnload");
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t*, cudaLibrary_t, const char*) {
  return refuse("cudaLibraryGetKernel");
}

cudaError_t cudaLibraryGetKernelCount(unsigned*, cudaLibrary_t) {
  return refuse("cudaLibraryGetKernelCount");
}

cudaError_t cudaLibraryGetGlobal(void**, size_t*, cudaLibrary_t, const char*) {
  return refuse("cudaLibraryGetGlobal");
}

cudaError_t cudaLibraryGetManaged(void**, size_t*, cudaLibrary_t, const char*) {
  return refuse("cudaLibraryGetManaged");
}

cudaError_t cudaLibraryGetUnifiedFunction(void**, cudaLibrary_t, const char*) {
  return refuse("cudaLibraryGetUnifiedFunction");
}

}  // extern "C"

#pragma GCC visibility pop
