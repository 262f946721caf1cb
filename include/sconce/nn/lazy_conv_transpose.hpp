#pragma once

#include "sconce/nn/lazy.hpp"

namespace sconce::nn {

/// Options for the lazy transposed convolutions. These are the options for
/// `torch::nn::ConvTranspose1d` through `ConvTranspose3d`, without `in_channels`.
template <size_t D>
struct LazyConvTransposeOptions {
  using padding_mode_t = torch::nn::detail::conv_padding_mode_t;  ///< only kZeros, as in Python

  /// Sets `out_channels` and `kernel_size` and leaves all other options at their defaults.
  LazyConvTransposeOptions(int64_t out_channels, torch::ExpandingArray<D> kernel_size)
      : out_channels_(out_channels), kernel_size_(kernel_size) {}
  operator torch::nn::detail::ConvNdOptions<D>() const;  ///< converts with `in_channels` set to 0

  TORCH_ARG(int64_t, out_channels);                  ///< number of output channels
  TORCH_ARG(torch::ExpandingArray<D>, kernel_size);  ///< one number, or one per dimension
  TORCH_ARG(torch::ExpandingArray<D>, stride) = 1;   ///< stride of the kernel
  TORCH_ARG(torch::ExpandingArray<D>, padding) = 0;  ///< size removed from both ends of the output
  TORCH_ARG(torch::ExpandingArray<D>, output_padding) = 0;  ///< size added to one end of the output
  TORCH_ARG(int64_t, groups) = 1;                           ///< must divide both channel counts
  TORCH_ARG(bool, bias) = true;                             ///< whether to learn an additive bias
  TORCH_ARG(torch::ExpandingArray<D>, dilation) = 1;        ///< spacing between kernel elements
  TORCH_ARG(padding_mode_t, padding_mode) = torch::kZeros;  ///< how padding is filled
};
using LazyConvTranspose1dOptions =
    LazyConvTransposeOptions<1>;  ///< options of `LazyConvTranspose1d`
using LazyConvTranspose2dOptions =
    LazyConvTransposeOptions<2>;  ///< options of `LazyConvTranspose2d`
using LazyConvTranspose3dOptions =
    LazyConvTransposeOptions<3>;  ///< options of `LazyConvTranspose3d`

/// A 1d transposed convolution for inputs of shape `(N, C, L)` or `(C, L)`, with `in_channels`
/// inferred from the first input. Python: `torch.nn.LazyConvTranspose1d`.
class LazyConvTranspose1dImpl
    : public LazyModule<LazyConvTranspose1dImpl, torch::nn::ConvTranspose1dImpl,
                        LazyConvTranspose1dOptions> {
 public:
  using LazyModule::LazyModule;
  /// Applies the layer, initializing the layer first if necessary. If `output_size` is given, the
  /// layer chooses `output_padding` so that the output has the requested size.
  /// @throw c10::Error in the same cases as `LazyModule::forward`.
  torch::Tensor forward(const torch::Tensor& input,
                        const std::optional<at::IntArrayRef>& output_size = std::nullopt) {
    initialize_for(input);
    return torch::nn::ConvTranspose1dImpl::forward(input, output_size);
  }
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t in_channels() const { return features("in_channels"); }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(std::optional<at::IntArrayRef>())})
};
/// Module holder for `LazyConvTranspose1dImpl`. Python: `torch.nn.LazyConvTranspose1d`.
TORCH_MODULE(LazyConvTranspose1d);

/// A 2d transposed convolution for inputs of shape `(N, C, H, W)` or `(C, H, W)`, with
/// `in_channels` inferred from the first input. Python: `torch.nn.LazyConvTranspose2d`.
class LazyConvTranspose2dImpl
    : public LazyModule<LazyConvTranspose2dImpl, torch::nn::ConvTranspose2dImpl,
                        LazyConvTranspose2dOptions> {
 public:
  using LazyModule::LazyModule;
  /// Applies the layer, initializing the layer first if necessary. If `output_size` is given, the
  /// layer chooses `output_padding` so that the output has the requested size.
  /// @throw c10::Error in the same cases as `LazyModule::forward`.
  torch::Tensor forward(const torch::Tensor& input,
                        const std::optional<at::IntArrayRef>& output_size = std::nullopt) {
    initialize_for(input);
    return torch::nn::ConvTranspose2dImpl::forward(input, output_size);
  }
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t in_channels() const { return features("in_channels"); }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(std::optional<at::IntArrayRef>())})
};
/// Module holder for `LazyConvTranspose2dImpl`. Python: `torch.nn.LazyConvTranspose2d`.
TORCH_MODULE(LazyConvTranspose2d);

/// A 3d transposed convolution for inputs of shape `(N, C, D, H, W)` or `(C, D, H, W)`, with
/// `in_channels` inferred from the first input. Python: `torch.nn.LazyConvTranspose3d`.
class LazyConvTranspose3dImpl
    : public LazyModule<LazyConvTranspose3dImpl, torch::nn::ConvTranspose3dImpl,
                        LazyConvTranspose3dOptions> {
 public:
  using LazyModule::LazyModule;
  /// Applies the layer, initializing the layer first if necessary. If `output_size` is given, the
  /// layer chooses `output_padding` so that the output has the requested size.
  /// @throw c10::Error in the same cases as `LazyModule::forward`.
  torch::Tensor forward(const torch::Tensor& input,
                        const std::optional<at::IntArrayRef>& output_size = std::nullopt) {
    initialize_for(input);
    return torch::nn::ConvTranspose3dImpl::forward(input, output_size);
  }
  /// @throw c10::Error if the layer is uninitialized. The message contains "uninitialized".
  int64_t in_channels() const { return features("in_channels"); }

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(std::optional<at::IntArrayRef>())})
};
/// Module holder for `LazyConvTranspose3dImpl`. Python: `torch.nn.LazyConvTranspose3d`.
TORCH_MODULE(LazyConvTranspose3d);

}  // namespace sconce::nn
