#include "sconce/amp/mixed_precision.hpp"

#include <c10/util/Exception.h>

namespace sconce::amp {

MixedPrecision::MixedPrecision(Precision precision, torch::Device device)
    : precision_(precision),
      device_(device),
      scaler_({.device = device.type(), .enabled = precision == Precision::fp16}) {
  TORCH_CHECK(precision != Precision::tf32 || device.is_cuda(),
              "sconce::amp::MixedPrecision: expected a GPU for Precision::tf32, got ", device);
}

backends::FlagsGuard MixedPrecision::flags() const {
  if (precision_ != Precision::tf32) return backends::FlagsGuard({});
  return backends::FlagsGuard({.float32_matmul_precision = "high", .cudnn_allow_tf32 = true});
}

AutocastGuard MixedPrecision::autocast() const {
  // If autocast is disabled, its dtype stays unset, so that the model can enable autocast itself.
  AutocastOptions options = {.enabled = false};
  if (precision_ == Precision::fp16) options = {.dtype = at::kHalf};
  if (precision_ == Precision::bf16) options = {.dtype = at::kBFloat16};
  return AutocastGuard(device_.type(), options);
}

void MixedPrecision::step(torch::optim::Optimizer& optimizer) {
  scaler_.step(optimizer);
  scaler_.update();
}

}  // namespace sconce::amp
