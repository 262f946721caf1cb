#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// Interface that `sconce::amp::GradScaler` uses to step an optimizer without reading values on the
/// host. The optimizer's kernels unscale the gradients and skip the step if necessary.
/// Python: the optimizer attributes `_step_supports_amp_scaling`, `grad_scale`, and `found_inf`.
class AmpScaling {
 public:
  virtual ~AmpScaling() = default;

  /// Returns whether `step_with_amp_scaling` may be called. This requires fused kernels.
  virtual bool step_supports_amp_scaling() const = 0;

  /// Performs one step. If `grad_scale` is defined, first divides the gradients by `grad_scale`. If
  /// `found_inf` is 1, the parameters, the state, and the step counts remain unchanged, bit for
  /// bit. `grad_scale` and `found_inf` are one-element float32 tensors on the parameters' device.
  /// For parameters on a different device, both tensors are copied to that device.
  /// @throw c10::Error if the optimizer's kernels do not support this.
  virtual void step_with_amp_scaling(const torch::Tensor& grad_scale,
                                     const torch::Tensor& found_inf) = 0;
};

}  // namespace sconce::optim
