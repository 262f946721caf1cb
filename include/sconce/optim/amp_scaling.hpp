#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// Interface through which `sconce::amp::GradScaler` steps an optimizer without a host read. The
/// optimizer's kernels unscale the gradients and skip the step if necessary.
/// Python: the optimizer attributes `_step_supports_amp_scaling`, `grad_scale`, and `found_inf`.
class AmpScaling {
 public:
  virtual ~AmpScaling() = default;

  /// Returns whether `step_with_amp_scaling` may be called. This requires fused kernels.
  virtual bool step_supports_amp_scaling() const = 0;

  /// Performs one step with the gradients divided by `grad_scale`, or not divided if it is
  /// undefined. If `found_inf` is 1, the step does not change a single bit of the parameters, the
  /// state, or the step counts. `grad_scale` and `found_inf` are float32 tensors with one element
  /// on the parameters' device. Parameters on other devices use copies.
  /// @throw c10::Error if the optimizer's kernels do not support this.
  virtual void step_with_amp_scaling(const torch::Tensor& grad_scale,
                                     const torch::Tensor& found_inf) = 0;
};

}  // namespace sconce::optim
