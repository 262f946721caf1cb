// CUDA kernels accept a 16-bit input for a 32-bit result, but CPU kernels do not.

#include <ATen/core/Tensor.h>
#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Tensor;

template <Tensor function(const Tensor&, int64_t, bool)>
Tensor softmax_of(const Tensor& input, int64_t dim, bool half_to_float) {
  return function(half_to_float ? input.to(at::kFloat) : input, dim, false);
}

template <Tensor function(const Tensor&, const Tensor&, int64_t, at::ScalarType)>
Tensor softmax_backward_of(const Tensor& grad, const Tensor& output, int64_t dim,
                           at::ScalarType dtype) {
  return function(grad, output, dim, grad.scalar_type()).to(dtype);
}

}  // namespace

void add_softmaxes(OwnKernels& kernels) {
  add_own(kernels, "_softmax", "", &softmax_of<&at::_softmax>);
  add_own(kernels, "_log_softmax", "", &softmax_of<&at::_log_softmax>);
  add_own(kernels, "_softmax_backward_data", "", &softmax_backward_of<&at::_softmax_backward_data>);
  add_own(kernels, "_log_softmax_backward_data", "",
          &softmax_backward_of<&at::_log_softmax_backward_data>);
}

}  // namespace simgpu
