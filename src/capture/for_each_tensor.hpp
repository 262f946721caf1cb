#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>

namespace sconce::detail {

/// Calls `f` with each tensor in an operator's argument or result, including undefined tensors.
template <class F>
void for_each_tensor(const c10::IValue& value, const F& f) {
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) f(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector()) f(tensor.value_or(at::Tensor()));
  }
}

template <class F>
void for_each_tensor(c10::ArrayRef<c10::IValue> values, const F& f) {
  for (const auto& value : values) for_each_tensor(value, f);
}

}  // namespace sconce::detail
