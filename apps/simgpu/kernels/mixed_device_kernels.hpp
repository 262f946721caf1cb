#pragma once

#include "simgpu/kernels/boxed_kernel.hpp"

namespace simgpu {

/// Kernel for aten::copy_. It uses the boxed kernel for copies within a GPU. Otherwise, it uses
/// LibTorch's own kernel, which ends up calling cudaMemcpyAsync.
class CopyKernel : public c10::OperatorKernel {
 public:
  explicit CopyKernel(const OperatorPlan& plan) : within_(plan) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  BoxedKernel within_;
};

/// Kernel for operators on tensor lists. It uses the boxed kernel if the lists are on the same GPU.
/// Otherwise, it uses LibTorch's own kernel, which iterates over the lists.
class ForeachKernel : public c10::OperatorKernel {
 public:
  explicit ForeachKernel(const OperatorPlan& plan) : within_(plan) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  BoxedKernel within_;
};

}  // namespace simgpu
