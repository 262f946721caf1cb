#include <cuda_runtime_api.h>
#include <nccl.h>

#include "simgpu/runtime/nccl/failure.hpp"
#include "simgpu/runtime/nccl/handles.hpp"

using simgpu::nccl::check_pointer;
using simgpu::nccl::find_handle;
using simgpu::nccl::guarded;

// NCCL functions for error handling and memory. The memory functions do not need a communicator
// here.

extern "C" {
#pragma GCC visibility push(default)

const char* ncclGetLastError(ncclComm_t) {
  return simgpu::nccl::last_error();
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

ncclResult_t ncclMemAlloc(void** data, size_t size) {
  return cudaMalloc(data, size) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* data) {
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

// Memory is not registered, because registration only speeds up transfers.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void*, size_t, void** handle) {
  return guarded([&] {
    find_handle(comm);
    *check_pointer(handle) = nullptr;
  });
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  return guarded([&] { find_handle(comm); });
}

#pragma GCC visibility pop
}
