#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <string>
#include <vector>

#include "simgpu/kernels/refusals.hpp"

namespace simgpu {

/// Which CPU tensors an operator accepts together with GPU tensors: none, numbers, numbers and
/// indices, or any. "Any" is for operators of other libraries, because nothing describes what their
/// CUDA kernels accept.
enum class CpuTensors { none, numbers, indices, any };

/// When an operator makes the host wait for its stream.
enum class HostWait { never, always, with_mask, with_sorter, without_output_size };

/// What the boxed kernel needs to know about an operator, determined once from its schema.
struct OperatorPlan {
  /// The name in reports, such as "aten::add.Tensor". Valid until the process ends.
  const char* label = "";
  /// The dispatch key of the CPU kernel.
  c10::DispatchKey cpu_key = c10::DispatchKey::CPU;
  std::vector<std::string> argument_names = {};
  /// Whether each argument is written to.
  std::vector<bool> writes = {};
  size_t returns = 0;
  /// Position of the generator among the arguments, or the number of arguments if there is none.
  size_t generator = 0;
  bool is_random = false;
  /// Position of the dropout rate, or the number of arguments if there is none. A fused attention
  /// draws no random numbers if the rate is 0.
  size_t dropout = 0;
  CpuTensors cpu_tensors = CpuTensors::none;
  HostWait host_wait = HostWait::never;
  /// Arguments that the CUDA kernel rejects.
  Refusals refusals = {};
};

/// Returns the plan of an operator whose CPU kernel uses the given key.
OperatorPlan make_plan(const c10::OperatorHandle& op, c10::DispatchKey cpu_key);

/// Returns whether the operator returns a view of an argument.
bool returns_view(const c10::FunctionSchema& schema);

}  // namespace simgpu
