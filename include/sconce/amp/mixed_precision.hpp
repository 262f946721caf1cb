#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include "sconce/amp/autocast.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/backends.hpp"
#include "sconce/fwd.hpp"

namespace sconce::amp {

/// The precision of a model's forward. Parameters and their gradients are float32 in all of them.
enum class Precision {
  fp32,  ///< float32 with LibTorch's settings: on a GPU convolutions may round to TF32
  tf32,  ///< float32 with TF32 in matrix products and convolutions, on GPUs only
  bf16,  ///< autocast to bfloat16
  fp16   ///< autocast to float16, with a GradScaler
};

/// The parts of a training loop that depend on its precision:
///
///     MixedPrecision precision(Precision::fp16, device);
///     const auto settings = precision.flags();
///     for (...) {
///       optimizer.zero_grad();
///       torch::Tensor loss;
///       { const auto autocast = precision.autocast(); loss = ...; }
///       precision.scale(loss).backward();
///       precision.unscale_(optimizer);  // only to use the gradients, as in clipping
///       precision.step(optimizer);
///     }
///
/// Python: `MixedPrecision` of Lightning.
class MixedPrecision {
 public:
  /// @throw c10::Error if the precision is tf32 and the device is not a GPU.
  MixedPrecision(Precision precision, torch::Device device);

  /// Sets LibTorch's precision of float32 for the scope of a whole loop, backward passes included.
  backends::FlagsGuard flags() const;

  /// Starts autocast for a forward and its loss. It is disabled in fp32 and tf32.
  AutocastGuard autocast() const;

  /// Returns the loss times the scale in fp16, and the loss itself otherwise.
  [[nodiscard]] torch::Tensor scale(const torch::Tensor& loss) { return scaler_.scale(loss); }
  /// Divides the gradients by the scale in fp16, and does nothing otherwise.
  /// @throw c10::Error like `GradScaler::unscale_`.
  void unscale_(torch::optim::Optimizer& optimizer) { scaler_.unscale_(optimizer); }

  /// Steps the optimizer unless the scaler found gradients that are not finite. Updates the scale.
  void step(torch::optim::Optimizer& optimizer);

  /// Returns the precision.
  Precision precision() const { return precision_; }
  /// Returns the scaler, which is disabled in all precisions except fp16.
  GradScaler& scaler() { return scaler_; }

 private:
  Precision precision_;
  torch::Device device_;
  GradScaler scaler_;
};

}  // namespace sconce::amp
