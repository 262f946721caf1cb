#include <cuda.h>

#include <string>

#include "simgpu/runtime/define_function.hpp"
#include "simgpu/runtime/process.hpp"

// Driver functions that simulated GPUs do not support.

namespace simgpu {

namespace {

// The driver's errors are separate from the runtime's errors, so cudaGetLastError does not return
// them.
int refuse_of_driver(const char* function) {
  write_once("simulated GPUs: " + std::string(function) + " is not supported");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

}  // namespace simgpu

#define SIMGPU_REFUSE(function) \
  SIMGPU_DEFINE(simgpu_##function, #function, simgpu::refuse_of_driver(#function))

// These functions are used for growable memory, such as the expandable segments in LibTorch's
// allocator.
SIMGPU_REFUSE(cuMemAddressFree)
SIMGPU_REFUSE(cuMemAddressReserve)
SIMGPU_REFUSE(cuMemCreate)
SIMGPU_REFUSE(cuMemExportToShareableHandle)
SIMGPU_REFUSE(cuMemGetAddressRange_v2)
SIMGPU_REFUSE(cuMemGetAllocationGranularity)
SIMGPU_REFUSE(cuMemGetAllocationPropertiesFromHandle)
SIMGPU_REFUSE(cuMemImportFromShareableHandle)
SIMGPU_REFUSE(cuMemMap)
SIMGPU_REFUSE(cuMemRelease)
SIMGPU_REFUSE(cuMemRetainAllocationHandle)
SIMGPU_REFUSE(cuMemSetAccess)
SIMGPU_REFUSE(cuMemUnmap)
SIMGPU_REFUSE(cuMemsetD32Async)
SIMGPU_REFUSE(cuPointerGetAttribute)
SIMGPU_REFUSE(cuStreamWriteValue32)

// These functions are used for kernels that are compiled at run time.
SIMGPU_REFUSE(cuFuncGetAttribute)
SIMGPU_REFUSE(cuFuncSetAttribute)
SIMGPU_REFUSE(cuFuncSetCacheConfig)
SIMGPU_REFUSE(cuLaunchCooperativeKernel)
SIMGPU_REFUSE(cuLaunchKernel)
SIMGPU_REFUSE(cuLinkAddData_v2)
SIMGPU_REFUSE(cuLinkComplete)
SIMGPU_REFUSE(cuLinkCreate_v2)
SIMGPU_REFUSE(cuModuleGetFunction)
SIMGPU_REFUSE(cuModuleLoad)
SIMGPU_REFUSE(cuModuleLoadData)
SIMGPU_REFUSE(cuModuleLoadDataEx)
SIMGPU_REFUSE(cuModuleUnload)
SIMGPU_REFUSE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
SIMGPU_REFUSE(cuTensorMapEncodeTiled)

#undef SIMGPU_REFUSE
