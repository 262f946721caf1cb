#include "simgpu/kernels/choosers.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "simgpu/kernels/below_autograd.hpp"

namespace simgpu {

namespace {

using at::IntArrayRef;
using at::Tensor;

bool is_acceptable(const Tensor&) {
  return false;
}

bool uses_ctc_loss(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, int64_t) {
  return false;
}

bool uses_ctc_loss_of_tensors(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t) {
  return false;
}

// Makes all weights views of a single buffer, as cuDNN does, and returns that buffer.
Tensor flatten_weight(at::TensorList weights, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                      bool, bool) {
  const BelowAutograd below;
  int64_t size = 0;
  for (const auto& weight : weights) size += weight.numel();
  auto buffer = at::empty({size}, weights[0].options());
  int64_t offset = 0;
  for (const auto& weight : weights) {
    auto part = buffer.narrow(0, offset, weight.numel()).view(weight.sizes());
    part.copy_(weight);
    weight.set_(part.storage(), part.storage_offset(), part.sizes(), part.strides());
    offset += weight.numel();
  }
  return buffer;
}

}  // namespace

void add_choosers(OwnKernels& kernels) {
  add_own(kernels, "cudnn_is_acceptable", "", &is_acceptable);
  add_own(kernels, "_use_cudnn_ctc_loss", "", &uses_ctc_loss);
  add_own(kernels, "_use_cudnn_ctc_loss", "Tensor", &uses_ctc_loss_of_tensors);
  add_own(kernels, "_use_miopen_ctc_loss", "", &uses_ctc_loss);
  add_own(kernels, "_use_miopen_ctc_loss", "Tensor", &uses_ctc_loss_of_tensors);
  add_own(kernels, "_cudnn_rnn_flatten_weight", "", &flatten_weight);
}

}  // namespace simgpu
