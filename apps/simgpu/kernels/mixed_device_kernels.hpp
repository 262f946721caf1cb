#pragma once

#include "simgpu/kernels/boxed_kernel.hpp"

namespace simgpu {

/// aten::copy_: the boxed kernel within a GPU; otherwise LibTorch's own, which ends in
/// cudaMemcpyAsync.
class CopyKernel : public c10::OperatorKernel {
 public:
  explicit CopyKernel(const OperatorPlan& plan) : within_(plan) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  BoxedKernel within_;
};

/// An operator on tensor lists: the boxed kernel if they are on the same GPU; otherwise LibTorch's
/// own, which iterates over the lists.
class ForeachKernel : public c10::OperatorKernel {
 public:
  explicit ForeachKernel(const OperatorPlan& plan) : within_(plan) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

 private:
  BoxedKernel within_;
};

}  // namespace simgpu
