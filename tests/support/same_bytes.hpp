#pragma once

#include <torch/types.h>

#include <cstring>

namespace sconce::test {

/// Returns whether two CPU tensors have the same type, sizes, and bits.
inline bool same_bytes(const torch::Tensor& a, const torch::Tensor& b) {
  const auto x = a.contiguous(), y = b.contiguous();
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
}

}  // namespace sconce::test
