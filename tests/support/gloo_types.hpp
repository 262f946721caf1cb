#pragma once

#include <torch/types.h>

#include <string_view>

#include "support/one_with_gloo.hpp"

namespace sconce::test {

/// Returns whether Gloo can reduce 16-bit floating-point tensors. The version of Gloo in Debian's
/// LibTorch cannot.
inline bool gloo_reduces_16_bits() {
  try {
    one_with_gloo().all_reduce(torch::zeros({1}, torch::kBFloat16));
  } catch (const c10::Error& error) {
    if (std::string_view(error.what()).find("Invalid scalar type") == std::string_view::npos) throw;
    return false;
  }
  return true;
}

}  // namespace sconce::test
