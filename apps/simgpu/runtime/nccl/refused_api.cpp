#include "simgpu/runtime/nccl/refusal.hpp"

// NCCL's functions that simulated GPUs do not have. They look at no argument, so each is
// another function under NCCL's name: the declarations in NCCL's header differ between its
// versions.

#define SIMGPU_REFUSE(name)                                                                     \
  extern "C" __attribute__((visibility("default"))) int simgpu_refused_##name() __asm__(#name); \
  extern "C" int simgpu_refused_##name() {                                                      \
    return simgpu::nccl::refuse(#name);                                                         \
  }

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
