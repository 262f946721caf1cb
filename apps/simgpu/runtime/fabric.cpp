#include "simgpu/runtime/process.hpp"

// LibTorch queries NVML to determine whether GPUs have a memory fabric, which is the first step in
// setting up symmetric memory. NVML is not available here, but LibTorch relies on NVML and would
// call a null function pointer. Therefore, this library, which precedes LibTorch in symbol lookup,
// defines the function instead. After this query, symmetric memory calls other functions, which
// report that they are not supported.

#pragma GCC visibility push(default)

extern "C" {

// c10::cuda::get_fabric_access(c10::DeviceIndex)
bool simgpu_get_fabric_access(signed char) __asm__("_ZN3c104cuda17get_fabric_accessEa");

bool simgpu_get_fabric_access(signed char) {
  simgpu::write_once("simulated GPUs: symmetric memory is not supported");
  return false;
}

}  // extern "C"

#pragma GCC visibility pop
