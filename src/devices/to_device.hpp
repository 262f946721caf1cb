#pragma once

#include <ATen/core/Tensor.h>

namespace sconce {

/// Returns the tensor on the device, and with `copy` one that shares no memory with it. A copy to a
/// GPU is not waited for; one to the CPU is, which else would be read before it is there.
inline at::Tensor to_device(const at::Tensor& tensor, c10::Device device, bool copy = false) {
  return tensor.to(device, /*non_blocking=*/!device.is_cpu(), copy);
}

}  // namespace sconce
