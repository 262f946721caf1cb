#include "simgpu/kernels/mixed_device_kernels.hpp"

#include <ATen/ops/copy_native.h>

#include "simgpu/kernels/tensors_of.hpp"

namespace simgpu {

namespace {

// Returns whether all tensors in the argument lists are on the same device.
bool lists_share_device(const torch::jit::Stack& stack, size_t count) {
  std::optional<c10::Device> device;
  bool is_shared = true;
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    if (!stack[i].isTensorList()) continue;
    for_tensors(stack[i], [&](const at::Tensor& tensor) {
      if (!device) device = tensor.device();
      is_shared = is_shared && tensor.device() == *device;
    });
  }
  return is_shared;
}

}  // namespace

void CopyKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack) {
  const auto first = stack->size() - 3;
  auto to = (*stack)[first].toTensor();
  const auto from = (*stack)[first + 1].toTensor();
  if (to.is_cuda() && to.device() == from.device()) return within_(op, keys, stack);
  at::native::copy_(to, from, (*stack)[first + 2].toBool());
  torch::jit::drop(*stack, 3);
  torch::jit::push(*stack, std::move(to));
}

void ForeachKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                               torch::jit::Stack* stack) {
  if (lists_share_device(*stack, op.schema().arguments().size())) return within_(op, keys, stack);
  // The kernel registered for the CPU is the composite kernel.
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

}  // namespace simgpu
