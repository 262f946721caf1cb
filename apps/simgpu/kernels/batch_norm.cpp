// cuDNN batch norm and the parts of SyncBatchNorm.

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>

#include <tuple>

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

std::tuple<Tensor, Tensor, Tensor, Tensor> cudnn_batch_norm(
    const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
    const OptionalTensor& mean, const OptionalTensor& variance, bool training, double momentum,
    double epsilon) {
  auto [out, saved_mean, saved_variance] =
      at::native_batch_norm(input, weight, bias, mean, variance, training, momentum, epsilon);
  return {out, saved_mean, saved_variance, at::empty({0}, input.options().dtype(at::kByte))};
}

std::tuple<Tensor, Tensor, Tensor> cudnn_batch_norm_backward(
    const Tensor& input, const Tensor& grad, const Tensor& weight, const OptionalTensor& mean,
    const OptionalTensor& variance, const OptionalTensor& saved_mean,
    const OptionalTensor& saved_variance, double epsilon, const Tensor&) {
  return at::native_batch_norm_backward(grad, input, weight, mean, variance, saved_mean,
                                        saved_variance, true, epsilon, {true, true, true});
}

// Returns float for 16-bit types, because CUDA accumulates them in float.
at::ScalarType sum_type(const Tensor& input) {
  return at::toOpMathType(input.scalar_type());
}

std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dims{0};
  for (int64_t i = 2; i < input.dim(); ++i) dims.push_back(i);
  return dims;
}

// Reshapes a tensor with one value per channel so that it broadcasts over the input.
Tensor per_channel(const Tensor& value, const Tensor& input) {
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = input.size(1);
  return value.to(sum_type(input)).view(sizes);
}

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double epsilon) {
  const auto values = input.to(sum_type(input));
  const auto dims = all_but_channels(input);
  const auto variance = values.var(at::OptionalIntArrayRef(dims), false);
  return {values.mean(dims), (variance + epsilon).rsqrt()};
}

Tensor batch_norm_elemt(const Tensor& input, const OptionalTensor& weight,
                        const OptionalTensor& bias, const Tensor& mean, const Tensor& invstd,
                        double) {
  auto out = (input - per_channel(mean, input)) * per_channel(invstd, input);
  if (weight && weight->defined()) out = out * per_channel(*weight, input);
  if (bias && bias->defined()) out = out + per_channel(*bias, input);
  return out.to(input.scalar_type());
}

Tensor& batch_norm_elemt_out(const Tensor& input, const OptionalTensor& weight,
                             const OptionalTensor& bias, const Tensor& mean, const Tensor& invstd,
                             double epsilon, Tensor& out) {
  return out.copy_(batch_norm_elemt(input, weight, bias, mean, invstd, epsilon));
}

void move_average(const OptionalTensor& average, const Tensor& value, double momentum) {
  if (average && average->defined()) average->mul_(1 - momentum).add_(value, momentum);
}

std::tuple<Tensor, Tensor> gather_stats_with_counts(const Tensor& input, const Tensor& means,
                                                    const Tensor& invstds,
                                                    const OptionalTensor& running_mean,
                                                    const OptionalTensor& running_variance,
                                                    double momentum, double epsilon,
                                                    const Tensor& counts) {
  const auto type = sum_type(input);
  const auto weights = counts.to(type).view({-1, 1});
  const auto total = weights.sum();
  const auto mean = (means.to(type) * weights).sum(0) / total;
  const auto variances = invstds.to(type).pow(-2) - epsilon;
  const auto squares = ((variances + (means.to(type) - mean).pow(2)) * weights).sum(0);
  move_average(running_mean, mean, momentum);
  move_average(running_variance, squares / (total - 1), momentum);
  return {mean, (squares / total + epsilon).rsqrt()};
}

std::tuple<Tensor, Tensor> gather_stats(const Tensor& input, const Tensor& means,
                                        const Tensor& invstds, const OptionalTensor& running_mean,
                                        const OptionalTensor& running_variance, double momentum,
                                        double epsilon, int64_t count) {
  const auto counts = at::full({means.size(0)}, count, means.options());
  return gather_stats_with_counts(input, means, invstds, running_mean, running_variance, momentum,
                                  epsilon, counts);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(const Tensor& grad, const Tensor& input,
                                                           const Tensor& mean, const Tensor& invstd,
                                                           const OptionalTensor& weight, bool, bool,
                                                           bool) {
  const auto dims = all_but_channels(input);
  const auto grads = grad.to(sum_type(input));
  const auto sum_dy = grads.sum(dims);
  const auto sum_dy_xmu = (grads * (input - per_channel(mean, input))).sum(dims);
  const auto type = weight && weight->defined() ? weight->scalar_type() : sum_type(input);
  return {sum_dy, sum_dy_xmu, (sum_dy_xmu * invstd).to(type), sum_dy.to(type)};
}

Tensor backward_elemt(const Tensor& grad, const Tensor& input, const Tensor& mean,
                      const Tensor& invstd, const OptionalTensor& weight, const Tensor& sum_dy,
                      const Tensor& sum_dy_xmu, const Tensor& count) {
  const auto total = count.sum().to(sum_type(input));
  const auto scale = per_channel(invstd, input);
  const auto slope = per_channel(sum_dy_xmu / total, input) * scale * scale;
  auto out = grad - per_channel(sum_dy / total, input) - (input - per_channel(mean, input)) * slope;
  out = out * scale;
  if (weight && weight->defined()) out = out * per_channel(*weight, input);
  return out.to(input.scalar_type());
}

}  // namespace

void add_batch_norms(OwnKernels& kernels) {
  add_own(kernels, "cudnn_batch_norm", "", &cudnn_batch_norm);
  add_own(kernels, "cudnn_batch_norm_backward", "", &cudnn_batch_norm_backward);
  add_own(kernels, "batch_norm_stats", "", &batch_norm_stats);
  add_own(kernels, "batch_norm_elemt", "", &batch_norm_elemt);
  add_own(kernels, "batch_norm_elemt", "out", &batch_norm_elemt_out);
  add_own(kernels, "batch_norm_gather_stats", "", &gather_stats);
  add_own(kernels, "batch_norm_gather_stats_with_counts", "", &gather_stats_with_counts);
  add_own(kernels, "batch_norm_backward_reduce", "", &backward_reduce);
  add_own(kernels, "batch_norm_backward_elemt", "", &backward_elemt);
}

}  // namespace simgpu
