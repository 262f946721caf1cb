#pragma once

#include <vector>

#include "catch.hpp"

namespace sconce::test {

/// Returns a padding mask `(N, length)` that hides all positions in each row after the first
/// `lengths` positions.
inline torch::Tensor padding(const std::vector<int64_t>& lengths, int64_t length) {
  return torch::arange(length) >= torch::tensor(lengths).unsqueeze(1);
}

/// Returns the causal mask `(length, length)` of type bool.
inline torch::Tensor causal(int64_t length) {
  return torch::ones({length, length}, torch::kBool).triu(1);
}

/// Returns whether the numbers are close, by default within the tolerances that Python's tests use
/// for float32. The tensors may differ in device and type.
inline bool near(const torch::Tensor& a, const torch::Tensor& b, double rtol = 1.3e-6,
                 double atol = 1e-5) {
  return torch::allclose(a.cpu().to(torch::kFloat), b.cpu().to(torch::kFloat), rtol, atol);
}

}  // namespace sconce::test
