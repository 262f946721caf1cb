#include "simgpu/runtime/define_function.hpp"
#include "simgpu/runtime/nccl/refusal.hpp"

// The NCCL functions that simulated GPUs do not support.

#define SIMGPU_REFUSE(function) \
  SIMGPU_DEFINE(simgpu_##function, #function, simgpu::nccl::refuse(#function))

SIMGPU_REFUSE(ncclCommGetUniqueId)
SIMGPU_REFUSE(ncclCommGrow)
SIMGPU_REFUSE(ncclCommMemStats)
SIMGPU_REFUSE(ncclCommResume)
SIMGPU_REFUSE(ncclCommRevoke)
SIMGPU_REFUSE(ncclCommShrink)
SIMGPU_REFUSE(ncclCommSuspend)
SIMGPU_REFUSE(ncclCommWindowDeregister)
SIMGPU_REFUSE(ncclCommWindowRegister)
SIMGPU_REFUSE(ncclDevCommCreate)
SIMGPU_REFUSE(ncclDevCommDestroy)
SIMGPU_REFUSE(ncclGetLsaMultimemDevicePointer)
SIMGPU_REFUSE(ncclGetPeerDevicePointer)
SIMGPU_REFUSE(ncclGroupSimulateEnd)
SIMGPU_REFUSE(ncclPutSignal)
SIMGPU_REFUSE(ncclSignal)
SIMGPU_REFUSE(ncclWaitSignal)
SIMGPU_REFUSE(ncclWinGetUserPtr)

#undef SIMGPU_REFUSE
