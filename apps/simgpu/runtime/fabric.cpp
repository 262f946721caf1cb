#include "simgpu/runtime/process.hpp"

// LibTorch asks NVML whether GPUs have a memory fabric, which its symmetric memory does first.
// There is no NVML, which LibTorch takes for granted here: it would call a null pointer. So this
// library, which comes before LibTorch, answers in its place. What symmetric memory calls next is
// refused.

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
