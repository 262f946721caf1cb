#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// The interface by which `sconce::amp::GradScaler` steps an optimizer without reading anything on
/// the host: the optimizer's kernels divide the gradients and skip the step themselves.
/// Python: an optimizer's attributes `_step_supports_amp_scaling`, `grad_scale` and `found_inf`.
class AmpScaling {
 public:
  virtual ~AmpScaling() = default;

  /// Whether `step_with_amp_scaling` may be called: only the fused kernels can do it.
  virtual bool step_supports_amp_scaling() const = 0;

  /// Makes one step with the gradients divided by `grad_scale`, or as they are where it is
  /// undefined. Where `found_inf` is 1 the step leaves parameters, state and step counts bitwise
  /// as they were. Both are 0-dim or one-element float32 tensors on the parameters' device; a
  /// parameter on another device gets copies.
  /// @throw c10::Error if the optimizer's kernels cannot do it.
  virtual void step_with_amp_scaling(const torch::Tensor& grad_scale,
                                     const torch::Tensor& found_inf) = 0;
};

}  // namespace sconce::optim
