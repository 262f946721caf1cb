#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <string>
#include <vector>

#include "simgpu/kernels/refusals.hpp"

namespace simgpu {

/// The CPU tensors that an operator accepts together with GPU tensors: none, numbers, numbers and
/// indices, or any. "Any" applies to operators from other libraries, because nothing describes
/// which tensors their CUDA kernels accept.
enum class CpuTensors { none, numbers, indices, any };

/// Specifies when an operator makes the host wait for its stream.
enum class HostWait { never, always, with_mask, with_sorter, without_output_size };

/// The properties of an operator that the boxed kernel needs, determined once from the operator's
/// schema.
struct OperatorPlan {
  /// The name in reports, such as "aten::add.Tensor". Valid until the process ends.
  const char* label = "";
  /// The dispatch key of the CPU kernel.
  c10::DispatchKey cpu_key = c10::DispatchKey::CPU;
  std::vector<std::string> argument_names = {};
  /// For each argument, whether the operator writes to it.
  std::vector<bool> writes = {};
  size_t returns = 0;
  /// The position of the generator among the arguments, or the number of arguments if there is
  /// none.
  size_t generator = 0;
  bool is_random = false;
  /// The position of the dropout rate, or the number of arguments if there is none. A fused
  /// attention operator draws no random numbers if the rate is 0.
  size_t dropout = 0;
  CpuTensors cpu_tensors = CpuTensors::none;
  HostWait host_wait = HostWait::never;
  /// The arguments that the CUDA kernel rejects.
  Refusals refusals = {};
};

/// Returns the plan for an operator whose CPU kernel uses the given dispatch key.
OperatorPlan make_plan(const c10::OperatorHandle& op, c10::DispatchKey cpu_key);

/// Returns whether the operator returns a view of an argument.
bool returns_view(const c10::FunctionSchema& schema);

}  // namespace simgpu
