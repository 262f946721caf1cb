#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_lerp.h>

#include <vector>

namespace sconce::optim {

/// Returns whether `lerp` supports the tensors, which must all have the same type. `lerp` does not
/// support integers.
inline bool can_lerp(const std::vector<at::Tensor>& tensors) {
  return tensors.front().is_floating_point() || tensors.front().is_complex();
}

/// Updates exponential moving averages once. All tensors must have the same type and device.
inline void move_towards(const std::vector<at::Tensor>& averages,
                         const std::vector<at::Tensor>& values, double decay) {
  if (can_lerp(averages)) return at::_foreach_lerp_(averages, values, 1 - decay);
  for (size_t i = 0; i < averages.size(); ++i) {
    averages[i].copy_(averages[i] * decay + values[i] * (1 - decay));
  }
}

}  // namespace sconce::optim
