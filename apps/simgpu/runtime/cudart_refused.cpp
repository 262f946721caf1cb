#include "simgpu/runtime/define_function.hpp"
#include "simgpu/runtime/process.hpp"

// CUDA runtime functions that LibTorch calls but that simulated GPUs do not support. If these
// functions were not defined here, calls to them would reach the real runtime, which is unaware of
// these GPUs and their memory.

#define SIMGPU_REFUSE(function) \
  SIMGPU_DEFINE(simgpu_##function, #function, simgpu::refuse(#function))

SIMGPU_REFUSE(cudaMallocAsync)
SIMGPU_REFUSE(cudaFreeAsync)
SIMGPU_REFUSE(cudaMallocManaged)
SIMGPU_REFUSE(cudaDeviceGetDefaultMemPool)
SIMGPU_REFUSE(cudaMemPoolGetAttribute)
SIMGPU_REFUSE(cudaMemPoolSetAttribute)
SIMGPU_REFUSE(cudaMemPoolSetAccess)
SIMGPU_REFUSE(cudaMemPoolTrimTo)
SIMGPU_REFUSE(cudaDeviceGetGraphMemAttribute)
SIMGPU_REFUSE(cudaDeviceSetGraphMemAttribute)
SIMGPU_REFUSE(cudaIpcGetMemHandle)
SIMGPU_REFUSE(cudaIpcOpenMemHandle)
SIMGPU_REFUSE(cudaIpcCloseMemHandle)
SIMGPU_REFUSE(cudaIpcGetEventHandle)
SIMGPU_REFUSE(cudaIpcOpenEventHandle)
SIMGPU_REFUSE(cudaMemcpy2DAsync)
SIMGPU_REFUSE(cudaMemcpyToSymbol)
SIMGPU_REFUSE(cudaGetSymbolAddress)
SIMGPU_REFUSE(cudaStreamBeginCaptureToGraph)
SIMGPU_REFUSE(cudaStreamUpdateCaptureDependencies)
SIMGPU_REFUSE(cudaGraphAddNode)
SIMGPU_REFUSE(cudaGraphConditionalHandleCreate)
SIMGPU_REFUSE(cudaGraphNodeGetDependencies)
SIMGPU_REFUSE(cudaLibraryLoadData)
SIMGPU_REFUSE(cudaLibraryLoadFromFile)
SIMGPU_REFUSE(cudaLibraryUnload)
SIMGPU_REFUSE(cudaLibraryGetKernel)
SIMGPU_REFUSE(cudaLibraryGetKernelCount)
SIMGPU_REFUSE(cudaLibraryGetGlobal)
SIMGPU_REFUSE(cudaLibraryGetManaged)
SIMGPU_REFUSE(cudaLibraryGetUnifiedFunction)

#undef SIMGPU_REFUSE
