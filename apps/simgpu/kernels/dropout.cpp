// CUDA's dropout operators. These operators' schemas have no argument for the generator that the
// CPU kernels need.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>

#include <tuple>

#include "simgpu/kernels/own_kernels.hpp"
#include "simgpu/kernels/random.hpp"

namespace simgpu {

namespace {

using at::Tensor;

Tensor random_mask(const Tensor& input, double keep, at::ScalarType dtype) {
  return at::empty_like(input, input.options().dtype(at::kFloat))
      .bernoulli_(keep, call_generator())
      .to(dtype);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  if (input.numel() == 0 || !train.value_or(true)) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  const auto mask = random_mask(input, 1 - p, at::kBool);
  return {input * mask * (p == 1 ? 0.0 : 1 / (1 - p)), mask};
}

std::tuple<Tensor, Tensor> fused_dropout(const Tensor& input, double keep,
                                         const std::optional<at::Generator>&) {
  const auto mask = random_mask(input, keep, at::kByte);
  return {input * mask * (1 / keep), mask};
}

Tensor masked_scale(const Tensor& input, const Tensor& mask, double scale) {
  return input * mask * scale;
}

}  // namespace

void add_dropouts(OwnKernels& kernels) {
  add_own(kernels, "native_dropout", "", &native_dropout);
  add_own(kernels, "_fused_dropout", "", &fused_dropout);
  add_own(kernels, "_masked_scale", "", &masked_scale);
}

}  // namespace simgpu
