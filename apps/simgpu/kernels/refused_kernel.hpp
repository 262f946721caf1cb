#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>

#include <string>

namespace simgpu {

/// The kernel for operators that simulated GPUs do not support.
class RefusedKernel : public c10::OperatorKernel {
 public:
  explicit RefusedKernel(std::string name);

  /// @throw c10::NotImplementedError with the operator's name.
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  const std::string name_;
};

}  // namespace simgpu
