#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include "sconce/amp/autocast.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/backends.hpp"
#include "sconce/fwd.hpp"

namespace sconce::amp {

/// The precision of a model's forward pass. Parameters and their gradients are always float32.
enum class Precision {
  fp32,  ///< float32 with LibTorch's settings; on a GPU, convolutions may round to TF32
  tf32,  ///< float32, with TF32 in matrix products and convolutions; GPUs only
  bf16,  ///< autocast to bfloat16
  fp16   ///< autocast to float16, with a `GradScaler`
};

/// Manages the parts of a training loop that depend on the precision: autocast, the gradient
/// scaler, and LibTorch's float32 settings.
///
///     MixedPrecision precision(Precision::fp16, device);
///     const auto settings = precision.flags();
///     for (...) {
///       optimizer.zero_grad();
///       torch::Tensor loss;
///       { const auto autocast = precision.autocast(); loss = ...; }
///       precision.scale(loss).backward();
///       precision.unscale_(optimizer);  // only if you use the gradients, for example to clip them
///       precision.step(optimizer);
///     }
///
/// Python: Lightning's `MixedPrecision` plugin.
class MixedPrecision {
 public:
  /// @throw c10::Error if `precision` is `tf32` and `device` is not a GPU.
  MixedPrecision(Precision precision, torch::Device device);

  /// Returns a guard that sets LibTorch's float32 precision. Keep the guard alive for the whole
  /// loop, including the backward passes.
  backends::FlagsGuard flags() const;

  /// Returns a guard that enables autocast for the forward pass and the loss computation. In `fp32`
  /// and `tf32` precision, the guard disables autocast.
  AutocastGuard autocast() const;

  /// In `fp16` precision, returns `loss` multiplied by the scale. Otherwise, returns `loss`
  /// unchanged.
  [[nodiscard]] torch::Tensor scale(const torch::Tensor& loss) { return scaler_.scale(loss); }
  /// In `fp16` precision, divides the gradients by the scale. Otherwise, does nothing.
  /// @throw c10::Error under the same conditions as `GradScaler::unscale_`.
  void unscale_(torch::optim::Optimizer& optimizer) { scaler_.unscale_(optimizer); }

  /// Steps the optimizer unless the scaler found non-finite gradients, then updates the scale.
  void step(torch::optim::Optimizer& optimizer);

  /// Returns the precision passed to the constructor.
  Precision precision() const { return precision_; }
  /// Returns the scaler, which is disabled for every precision except `fp16`.
  GradScaler& scaler() { return scaler_; }

 private:
  Precision precision_;
  torch::Device device_;
  GradScaler scaler_;
};

}  // namespace sconce::amp
