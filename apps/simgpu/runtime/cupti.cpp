#include <cupti.h>

#include "simgpu/runtime/define_function.hpp"
#include "simgpu/runtime/process.hpp"

// Provides CUPTI without a GPU, so LibTorch's profiler records only work on the host. The real
// CUPTI library would crash in a process that uses this library as its driver.

#define SIMGPU_NO_PROFILER(function) \
  SIMGPU_DEFINE(simgpu_##function, #function, CUPTI_ERROR_NOT_INITIALIZED)

SIMGPU_NO_PROFILER(cuptiActivityDisable)
SIMGPU_NO_PROFILER(cuptiActivityEnable)
SIMGPU_NO_PROFILER(cuptiActivityEnableCudaEventDeviceTimestamps)
SIMGPU_NO_PROFILER(cuptiActivityEnableDriverApi)
SIMGPU_NO_PROFILER(cuptiActivityEnableRuntimeApi)
SIMGPU_NO_PROFILER(cuptiActivityFlushAll)
SIMGPU_NO_PROFILER(cuptiActivityGetNextRecord)
SIMGPU_NO_PROFILER(cuptiActivityGetNumDroppedRecords)
SIMGPU_NO_PROFILER(cuptiActivityPopExternalCorrelationId)
SIMGPU_NO_PROFILER(cuptiActivityPushExternalCorrelationId)
SIMGPU_NO_PROFILER(cuptiActivityRegisterCallbacks)
SIMGPU_NO_PROFILER(cuptiActivityRegisterTimestampCallback)
SIMGPU_NO_PROFILER(cuptiActivitySetAttribute)
SIMGPU_NO_PROFILER(cuptiEnableCallback)
SIMGPU_NO_PROFILER(cuptiEnableDomain)
SIMGPU_NO_PROFILER(cuptiFinalize)
SIMGPU_NO_PROFILER(cuptiGetCallbackName)
SIMGPU_NO_PROFILER(cuptiSubscribe)
SIMGPU_NO_PROFILER(cuptiUnsubscribe)

// LibTorch's profiler calls this function first if GPU activities are requested.
SIMGPU_DEFINE(simgpu_cuptiGetVersion, "cuptiGetVersion",
              (simgpu::write_once("simulated GPUs: profiles contain only host activity"),
               CUPTI_ERROR_NOT_INITIALIZED))

#undef SIMGPU_NO_PROFILER
