#pragma once

#include <ATen/core/stack.h>

#include <string_view>
#include <vector>

namespace simgpu {

/// A combination that LibTorch's CUDA kernel rejects although the CPU kernel accepts it. The file
/// refusals.md contains one row for each combination.
struct Refusal {
  /// The name of the operator without its overload. The in-place and out versions are also
  /// rejected.
  std::string_view name;
  /// The position of the tensor, or the list of tensors, whose type is rejected.
  size_t argument;
  /// The rejected types, named as in errors and separated by spaces.
  std::string_view types;
  /// CUDA's error message, in which {} stands for the type.
  std::string_view error;
};

using Refusals = std::vector<Refusal>;

/// Returns the refusals for the operator with the given full name, such as "aten::addmm.out".
Refusals refusals_of(std::string_view operator_name);

/// Checks a call whose `count` arguments are at the top of the stack. Calls with an empty tensor
/// are accepted, because they launch no kernel.
/// @throw c10::Error with CUDA's message and error class if a refusal applies to the arguments.
void check_refusals(const Refusals& refusals, const torch::jit::Stack& stack, size_t count);

}  // namespace simgpu
