#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <string>
#include <vector>

#include "simgpu/kernels/refusals.hpp"

namespace simgpu {

/// Which CPU tensors an operator accepts together with tensors of a GPU: none, numbers, numbers and
/// indices, or any, since nothing describes what another library's CUDA kernel accepts.
enum class CpuTensors { none, numbers, indices, any };

/// When an operator makes the host wait for its stream.
enum class HostWait { never, always, with_mask, with_sorter, without_output_size };

/// What the boxed kernel needs to know of an operator, found once from its schema.
struct OperatorPlan {
  /// Name in reports: "aten::add.Tensor". Lives as long as the process.
  const char* label = "";
  /// The dispatch key of the CPU's kernel.
  c10::DispatchKey cpu_key = c10::DispatchKey::CPU;
  std::vector<std::string> argument_names = {};
  /// Whether each argument is written.
  std::vector<bool> writes = {};
  size_t returns = 0;
  /// Position of the generator among the arguments; the number of arguments if there is none.
  size_t generator = 0;
  bool is_random = false;
  /// Position of the rate of dropout, without which a fused attention draws no random numbers; the
  /// number of arguments if there is none.
  size_t dropout = 0;
  CpuTensors cpu_tensors = CpuTensors::none;
  HostWait host_wait = HostWait::never;
  /// Arguments that CUDA's kernel refuses.
  Refusals refusals = {};
};

/// Returns the plan of an operator whose CPU kernel has the given key.
OperatorPlan make_plan(const c10::OperatorHandle& op, c10::DispatchKey cpu_key);

/// Whether the operator returns a view of an argument.
bool returns_view(const c10::FunctionSchema& schema);

}  // namespace simgpu
