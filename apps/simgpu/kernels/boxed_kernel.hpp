#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "simgpu/kernels/operator_plan.hpp"

namespace simgpu {

/// A kernel of a GPU that runs a kernel of the CPU: it sees the GPU's memory as tensors of the CPU,
/// and copies new results to memory of the GPU's allocator.
class BoxedKernel : public c10::OperatorKernel {
 public:
  /// Runs `own`, a function of tensors of the CPU, if it is given; else the operator's kernel of
  /// the plan's key.
  explicit BoxedKernel(const OperatorPlan& plan, std::optional<c10::KernelFunction> own = {});

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  const OperatorPlan plan_;
  const std::optional<c10::KernelFunction> own_;
};

}  // namespace simgpu
