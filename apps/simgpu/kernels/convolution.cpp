// cuDNN and native CUDA convolutions, implemented with LibTorch's CPU convolution.

#include <ATen/core/Tensor.h>
#include <ATen/ops/convolution.h>

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::IntArrayRef;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor convolve(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  const std::vector<int64_t> none(padding.size(), 0);
  return at::convolution(input, weight, bias, stride, padding, dilation, false, none, groups);
}

Tensor cudnn_convolution(const Tensor& input, const Tensor& weight, IntArrayRef padding,
                         IntArrayRef stride, IntArrayRef dilation, int64_t groups, bool, bool,
                         bool) {
  return convolve(input, weight, {}, stride, padding, dilation, groups);
}

Tensor& cudnn_convolution_out(const Tensor& input, const Tensor& weight, IntArrayRef padding,
                              IntArrayRef stride, IntArrayRef dilation, int64_t groups, bool, bool,
                              bool, Tensor& out) {
  return out.copy_(convolve(input, weight, {}, stride, padding, dilation, groups));
}

Tensor cudnn_convolution_transpose(const Tensor& input, const Tensor& weight, IntArrayRef padding,
                                   IntArrayRef output_padding, IntArrayRef stride,
                                   IntArrayRef dilation, int64_t groups, bool, bool, bool) {
  return at::convolution(input, weight, {}, stride, padding, dilation, true, output_padding,
                         groups);
}

Tensor cudnn_convolution_relu(const Tensor& input, const Tensor& weight, const OptionalTensor& bias,
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                              int64_t groups) {
  return convolve(input, weight, bias, stride, padding, dilation, groups).relu_();
}

Tensor cudnn_convolution_add_relu(const Tensor& input, const Tensor& weight, const Tensor& z,
                                  const std::optional<at::Scalar>& alpha,
                                  const OptionalTensor& bias, IntArrayRef stride,
                                  IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return convolve(input, weight, bias, stride, padding, dilation, groups)
      .add_(z, alpha.value_or(1))
      .relu_();
}

// Each group contains one input channel.
Tensor depthwise(const Tensor& input, const Tensor& weight, IntArrayRef, const OptionalTensor& bias,
                 IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) {
  return convolve(input, weight, bias, stride, padding, dilation, input.size(1));
}

const Tensor& depthwise_out(const Tensor& input, const Tensor& weight, IntArrayRef size,
                            const OptionalTensor& bias, IntArrayRef stride, IntArrayRef padding,
                            IntArrayRef dilation, const Tensor& out) {
  return out.copy_(depthwise(input, weight, size, bias, stride, padding, dilation));
}

}  // namespace

void add_convolutions(OwnKernels& kernels) {
  add_own(kernels, "cudnn_convolution", "", &cudnn_convolution);
  add_own(kernels, "cudnn_convolution", "out", &cudnn_convolution_out);
  add_own(kernels, "cudnn_convolution_transpose", "", &cudnn_convolution_transpose);
  add_own(kernels, "cudnn_convolution_relu", "", &cudnn_convolution_relu);
  add_own(kernels, "cudnn_convolution_add_relu", "", &cudnn_convolution_add_relu);
  add_own(kernels, "_conv_depthwise2d", "", &depthwise);
  add_own(kernels, "_conv_depthwise2d", "out", &depthwise_out);
  add_own(kernels, "conv_depthwise3d", "", &depthwise);
}

}  // namespace simgpu
