#pragma once

#include <ATen/core/Tensor.h>

namespace sconce {

/// Returns the tensor on the device. With `copy`, the result never shares memory with the original.
/// Copies to a GPU are asynchronous. Copies to the CPU are synchronous, because otherwise, the host
/// could read them too early.
inline at::Tensor to_device(const at::Tensor& tensor, c10::Device device, bool copy = false) {
  return tensor.to(device, /*non_blocking=*/!device.is_cpu(), copy);
}

}  // namespace sconce
