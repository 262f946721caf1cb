#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace sconce {

/// Returns whether `to.copy_(from)` can convert the values. LibTorch does not provide a list of
/// supported conversions, and it cannot convert quantized values or packed 4-bit pairs. Therefore,
/// this function tries to copy the first few values.
inline bool can_copy(const at::Tensor& to, const at::Tensor& from) {
  if (!from.defined() || from.layout() != c10::kStrided || from.is_meta()) return false;
  if (to.scalar_type() == from.scalar_type()) return true;
  try {
    at::Tensor few = from;
    for (int64_t i = 0; i < few.dim(); ++i) {
      few = few.narrow(i, 0, std::min<int64_t>(few.size(i), 2));
    }
    at::empty(few.sizes(), to.options()).copy_(few);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace sconce
