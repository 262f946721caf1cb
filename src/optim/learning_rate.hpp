#pragma once

// This is an internal header of src/optim.

#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/rsub.h>

#include <optional>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

/// The learning rate in a step. If the learning rate is a tensor, each operation rounds to the
/// tensor's type, as in Python.
struct LearningRate {
  double number = 0;                      // also the tensor's value, if it is on the CPU
  std::optional<at::Tensor> tensor = {};  // 0-dim

  /// Returns the factor by which decoupled weight decay multiplies the parameters.
  at::Tensor decay_factor(double weight_decay) const {
    if (!tensor) return at::native::wrapped_scalar_tensor(1 - number * weight_decay);
    return at::rsub(tensor->mul(at::native::wrapped_scalar_tensor(weight_decay)), 1);
  }

  /// Returns the rate divided by `divisor`. Reads a tensor on the host.
  double over(double divisor) const {
    if (!tensor) return number / divisor;
    return tensor->div(at::native::wrapped_scalar_tensor(divisor)).item<double>();
  }

  /// Returns the rate multiplied by `factor` and divided by `divisor`. Reads a tensor on the host.
  double times_over(double factor, double divisor) const {
    if (!tensor) return number * factor / divisor;
    return LearningRate{0, tensor->mul(at::native::wrapped_scalar_tensor(factor))}.over(divisor);
  }
};

/// Returns the learning rate on the CPU.
inline LearningRate host_lr(double options_lr, const ExtraOptions& extra) {
  if (!extra.lr) return {options_lr, {}};
  const auto tensor = extra.lr->detach().cpu().reshape({});
  return {tensor.item<double>(), tensor};
}

/// Moves a learning rate that is a GPU tensor to this device, and leaves its number unset.
inline LearningRate device_lr(const ExtraOptions& extra, c10::Device device) {
  return {0, extra.lr->detach().to(device, /*non_blocking=*/true).reshape({})};
}

}  // namespace sconce::optim
