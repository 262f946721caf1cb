#pragma once

#include <torch/types.h>
#include <torch/version.h>

#include <cmath>

namespace sconce::test {

/// Returns whether this LibTorch on this CPU computes the recorded numbers of an optimizer bit for
/// bit. They were recorded with LibTorch 2.15, on CPUs on which MKL rounds square roots correctly.
/// On an Intel Xeon with AVX-512, MKL does not round all of them correctly: see
/// docs/determinism.md.
inline bool rounds_as_recorded() {
  if (TORCH_VERSION_MINOR < 15) return false;
  const auto numbers = torch::arange(1, 100'001, torch::kFloat);
  const auto roots = numbers.sqrt();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (roots.const_data_ptr<float>()[i] != std::sqrt(numbers.const_data_ptr<float>()[i]))
      return false;
  }
  return true;
}

}  // namespace sconce::test
