#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>

#include <cstddef>

#include "capture/known_operators.hpp"

namespace sconce::detail {

/// Returns whether the operator's schema marks the argument as written.
inline bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// Returns whether the operator overwrites every element of the argument at the given index without
/// reading any of them.
inline bool fills(const c10::FunctionSchema& schema, size_t index) {
  const auto& argument = schema.arguments()[index];
  return writes(argument) &&
         (argument.is_out() || (index == 0 && has_trait(schema.name(), Trait::fill)));
}

/// Returns whether two tensors that share memory refer to the same elements in the same layout.
inline bool have_same_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.storage_offset() == b.storage_offset() && a.scalar_type() == b.scalar_type() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

}  // namespace sconce::detail
