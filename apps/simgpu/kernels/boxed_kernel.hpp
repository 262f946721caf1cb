#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "simgpu/kernels/operator_plan.hpp"

namespace simgpu {

/// A GPU kernel that runs a CPU kernel: it passes the GPU's memory as CPU tensors, and copies new
/// results to memory from the GPU's allocator.
class BoxedKernel : public c10::OperatorKernel {
 public:
  /// Runs `own`, a function of CPU tensors, if it is given; otherwise, the operator's kernel for
  /// the plan's key.
  explicit BoxedKernel(const OperatorPlan& plan, std::optional<c10::KernelFunction> own = {});

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  const OperatorPlan plan_;
  const std::optional<c10::KernelFunction> own_;
};

}  // namespace simgpu
