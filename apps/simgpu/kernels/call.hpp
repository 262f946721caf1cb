#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <utility>
#include <vector>

#include "simgpu/kernels/captured_numbers.hpp"
#include "simgpu/kernels/operator_plan.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// What a kernel has made: a tensor of the CPU, and the GPU's that the caller gets.
struct Result {
  at::Tensor cpu;
  at::Tensor gpu;
  /// Position among the tensors that the operator returns; -1 for an argument that was resized.
  int64_t position = -1;
};

/// One call of an operator on a GPU: its arguments as the CPU's kernel sees them, and its results
/// as the caller sees them.
class Call {
 public:
  /// Finds the device among the arguments, which lie on top of the stack.
  /// @throw c10::Error if they lie on several devices and the operator does not take that.
  Call(const OperatorPlan& plan, const torch::jit::Stack& stack);

  c10::Device device() const { return device_; }
  /// Whether an argument is sparse or nested.
  bool has_part_tensors() const { return has_part_tensors_; }
  /// Whether the host must wait for the stream, given the arguments.
  bool waits_for_host(const torch::jit::Stack& stack) const;

  /// Copies to the GPU, as CUDA's operators do, the indices of the CPU and a number that goes where
  /// they point.
  void move_indices(torch::jit::Stack& stack) const;

  /// Replaces the arguments on the stack by tensors of the CPU with the same memory. A captured
  /// call gets copies of the numbers of the CPU, which replays do not read anew.
  void replace_arguments(torch::jit::Stack& stack, bool is_captured);

  /// The numbers of the CPU among the arguments of a captured call.
  const CapturedNumbers& numbers() const { return numbers_; }

  /// What the kernel reads and writes of its arguments.
  const Work& work() const { return work_; }

  /// Replaces the results on the stack by tensors of the GPU. Returns those whose bytes must still
  /// be copied to the GPU.
  std::vector<Result> replace_results(torch::jit::Stack& stack);

 private:
  struct Argument {
    at::Tensor gpu;
    at::Tensor cpu;
    bool writes;
  };

  void see(const at::Tensor& tensor, size_t index);
  void refuse_device(c10::Device device, size_t index) const;
  at::Tensor on_cpu(const at::Tensor& tensor, bool writes);
  at::Tensor strided_on_cpu(const at::Tensor& tensor, bool writes);
  at::Tensor result(const at::Tensor& cpu);
  at::Tensor new_result(const at::Tensor& cpu);
  void write_back(const Argument& argument);

  const OperatorPlan& plan_;
  c10::Device device_ = c10::kCPU;
  bool has_part_tensors_ = false;
  bool fills_mask_ = false;
  std::vector<Argument> arguments_;
  Work work_;
  CapturedNumbers numbers_;
  std::vector<Result> results_;
  int64_t position_ = -1;
};

}  // namespace simgpu
