#pragma once

#include <ATen/core/stack.h>

#include <string_view>
#include <vector>

namespace simgpu {

/// A combination that LibTorch's CUDA kernel refuses and the CPU's takes. The file refusals.md has
/// a row for each.
struct Refusal {
  /// Name of the operator without its overload; in-place and out versions are refused too.
  std::string_view name;
  /// Position of the tensor, or of the list of tensors, whose type is refused.
  size_t argument;
  /// Types, by their names in errors, separated by spaces.
  std::string_view types;
  /// CUDA's error; {} stands for the type.
  std::string_view error;
};

using Refusals = std::vector<Refusal>;

/// Returns the refusals of an operator, by its full name: "aten::addmm.out".
Refusals refusals_of(std::string_view operator_name);

/// Checks a call whose `count` arguments lie on top of the stack. Calls with an empty tensor pass,
/// as they launch no kernel.
/// @throw c10::Error with CUDA's text, and of its class, if a refusal is for the arguments.
void check_refusals(const Refusals& refusals, const torch::jit::Stack& stack, size_t count);

}  // namespace simgpu
