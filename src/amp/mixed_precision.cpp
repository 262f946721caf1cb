#include "sconce/amp/mixed_precision.hpp"

#include <ATen/Context.h>

namespace sconce::amp {

namespace {

const char* name_of(at::Float32MatmulPrecision precision) {
  if (precision == at::Float32MatmulPrecision::HIGHEST) return "highest";
  return precision == at::Float32MatmulPrecision::HIGH ? "high" : "medium";
}

}  // namespace

MixedPrecision::SettingsGuard::SettingsGuard(bool tf32) {
  if (!tf32) return;
  auto& context = at::globalContext();
  before_ = {name_of(context.float32MatmulPrecision()), context.allowTF32CuDNN()};
  context.setFloat32MatmulPrecision("high");
  context.setAllowTF32CuDNN(true);
}

MixedPrecision::SettingsGuard::~SettingsGuard() {
  if (!before_) return;
  at::globalContext().setFloat32MatmulPrecision(before_->first);
  at::globalContext().setAllowTF32CuDNN(before_->second);
}

MixedPrecision::MixedPrecision(Precision precision, torch::Device device)
    : precision_(precision),
      device_(device),
      scaler_({.device = device.type(), .enabled = precision == Precision::fp16}) {
  TORCH_CHECK(precision != Precision::tf32 || device.is_cuda(),
              "sconce::amp::MixedPrecision: expected a GPU for Precision::tf32, got ", device);
}

AutocastGuard MixedPrecision::autocast() const {
  const bool is_half = precision_ == Precision::fp16;
  return AutocastGuard(device_.type(), {.dtype = is_half ? at::kHalf : at::kBFloat16,
                                        .enabled = is_half || precision_ == Precision::bf16});
}

void MixedPrecision::step(torch::optim::Optimizer& optimizer) {
  scaler_.step(optimizer);
  scaler_.update();
}

}  // namespace sconce::amp
