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

/// A result of a kernel: the CPU tensor and the GPU tensor that is returned to the caller.
struct Result {
  at::Tensor cpu;
  at::Tensor gpu;
  /// The position among the returned tensors, or -1 for a resized argument.
  int64_t position = -1;
};

/// One call of an operator on a GPU: the arguments passed to the CPU kernel and the results
/// returned to the caller.
class Call {
 public:
  /// Determines the device from the arguments at the top of the stack.
  /// @throw c10::Error if they are on several devices and the operator does not allow that.
  Call(const OperatorPlan& plan, const torch::jit::Stack& stack);

  c10::Device device() const { return device_; }
  /// Returns whether an argument is sparse or nested.
  bool has_part_tensors() const { return has_part_tensors_; }
  /// Returns whether these arguments require the host to wait for the stream.
  bool waits_for_host(const torch::jit::Stack& stack) const;

  /// Copies CPU indices to the GPU, as CUDA's operators do, along with any CPU number that is
  /// written to the indexed elements.
  void move_indices(torch::jit::Stack& stack) const;

  /// Replaces the arguments on the stack with CPU tensors that share their memory. In a captured
  /// call, CPU numbers are copied, because replays do not read them again.
  void replace_arguments(torch::jit::Stack& stack, bool is_captured);

  /// Returns the CPU numbers among the arguments of a captured call.
  const CapturedNumbers& numbers() const { return numbers_; }

  /// Returns the argument memory that the kernel reads and writes.
  const Work& work() const { return work_; }

  /// Replaces the results on the stack with GPU tensors. Returns the results that still have to be
  /// copied to the GPU.
  std::vector<Result> replace_results(torch::jit::Stack& stack);

 private:
  struct Argument {
    at::Tensor gpu;
    at::Tensor cpu;
    bool writes;
  };

  void check_device(const at::Tensor& tensor, size_t index);
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
