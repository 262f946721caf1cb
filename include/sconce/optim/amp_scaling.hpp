#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// The interface by which `sconce::amp::GradScaler` steps an optimizer without a host read: the
/// optimizer's kernels divide the gradients and skip the step.
/// Python: an optimizer's attributes `_step_supports_amp_scaling`, `grad_scale` and `found_inf`.
class AmpScaling {
 public:
  virtual ~AmpScaling() = default;

  /// Returns whether `step_with_amp_scaling` may be called. It needs fused kernels.
  virtual bool step_supports_amp_scaling() const = 0;

  /// Makes one step with the gradients divided by `grad_scale`, or not divided if it is undefined.
  /// If `found_inf` is 1, the step changes no bit of parameters, state and step counts. Both are
  /// float32 tensors with one element on the parameters' device; a parameter on another device gets
  /// copies.
  /// @throw c10::Error if the optimizer's kernels cannot do it.
  virtual void step_with_amp_scaling(const torch::Tensor& grad_scale,
                                     const torch::Tensor& found_inf) = 0;
};

}  // namespace sconce::optim
