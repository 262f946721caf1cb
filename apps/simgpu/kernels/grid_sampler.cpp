// cuDNN grid samplers, with bilinear interpolation, zero padding, and aligned corners.

#include <ATen/core/Tensor.h>
#include <ATen/ops/affine_grid_generator.h>
#include <ATen/ops/affine_grid_generator_backward.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward.h>

#include <tuple>

#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Tensor;

constexpr int64_t bilinear_mode = 0;
constexpr int64_t zeros_padding = 0;

Tensor cudnn_grid_sampler(const Tensor& input, const Tensor& grid) {
  return at::grid_sampler_2d(input, grid, bilinear_mode, zeros_padding, true);
}

std::tuple<Tensor, Tensor> cudnn_grid_sampler_backward(const Tensor& input, const Tensor& grid,
                                                       const Tensor& grad) {
  return at::grid_sampler_2d_backward(grad, input, grid, bilinear_mode, zeros_padding, true,
                                      {true, true});
}

Tensor cudnn_affine_grid_generator(const Tensor& theta, int64_t n, int64_t c, int64_t h,
                                   int64_t w) {
  return at::affine_grid_generator(theta, {n, c, h, w}, true);
}

Tensor cudnn_affine_grid_generator_backward(const Tensor& grad, int64_t n, int64_t c, int64_t h,
                                            int64_t w) {
  return at::affine_grid_generator_backward(grad, {n, c, h, w}, true);
}

}  // namespace

void add_grid_samplers(OwnKernels& kernels) {
  add_own(kernels, "cudnn_grid_sampler", "", &cudnn_grid_sampler);
  add_own(kernels, "cudnn_grid_sampler_backward", "", &cudnn_grid_sampler_backward);
  add_own(kernels, "cudnn_affine_grid_generator", "", &cudnn_affine_grid_generator);
  add_own(kernels, "cudnn_affine_grid_generator_backward", "",
          &cudnn_affine_grid_generator_backward);
}

}  // namespace simgpu
