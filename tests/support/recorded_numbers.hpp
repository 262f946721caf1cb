#pragma once

#include <torch/types.h>
#include <torch/version.h>

#include <cmath>

namespace sconce::test {

/// Returns whether the numbers were recorded with a version of LibTorch that computes the same bits
/// as this one.
constexpr bool is_recorded_version() {
  return TORCH_VERSION_MINOR >= 15;
}

/// Returns whether an optimizer that calls LibTorch's square root computes the recorded numbers bit
/// for bit on this CPU. They were recorded on CPUs on which MKL rounds square roots correctly. On
/// an Intel Xeon with AVX-512, MKL does not round all of them correctly: see docs/determinism.md.
inline bool rounds_as_recorded() {
  const auto numbers = torch::arange(1, 100'001, torch::kFloat);
  const auto roots = numbers.sqrt();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (roots.const_data_ptr<float>()[i] != std::sqrt(numbers.const_data_ptr<float>()[i]))
      return false;
  }
  return is_recorded_version();
}

}  // namespace sconce::test
