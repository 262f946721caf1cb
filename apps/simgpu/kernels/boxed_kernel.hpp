#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "simgpu/kernels/operator_plan.hpp"

namespace simgpu {

/// A GPU kernel that runs a CPU kernel. It passes the GPU's memory as CPU tensors and copies new
/// results into memory allocated by the GPU's allocator.
class BoxedKernel : public c10::OperatorKernel {
 public:
  /// Runs `own`, a function that operates on CPU tensors, if one is given. Otherwise, runs the
  /// operator's kernel for the plan's dispatch key.
  explicit BoxedKernel(const OperatorPlan& plan, std::optional<c10::KernelFunction> own = {});

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  const OperatorPlan plan_;
  const std::optional<c10::KernelFunction> own_;
};

}  // namespace simgpu
