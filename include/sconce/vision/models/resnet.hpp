#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>
#include <torch/nn/pimpl.h>

#include <array>
#include <cstdint>

namespace sconce::vision::models {

/// Options for a ResNet, with the same names and defaults as in torchvision.
struct ResNetOptions {
  int64_t num_classes = 1000;       ///< number of outputs
  bool zero_init_residual = false;  ///< whether to initialize each block's last norm with weight 0
  int64_t groups = 1;               ///< groups of the 3 x 3 convolutions in a bottleneck
  int64_t width_per_group = 64;     ///< channels per group in `layer1`
  /// Whether `layer2`, `layer3`, and `layer4` use dilated convolutions instead of strided
  /// convolutions.
  std::array<bool, 3> replace_stride_with_dilation = {};
};

/// Types of ResNet blocks.
enum class ResNetBlock {
  basic,      ///< two 3 x 3 convolutions
  bottleneck  ///< 1 x 1, 3 x 3, and 1 x 1, with four times as many channels at the end
};

/// A residual network for images. The parameters have the same names as in torchvision and, for the
/// same seed, the same initial values. Weights can therefore be exchanged with torchvision in both
/// directions, using `nn::state_dict` and `nn::load_state_dict`. The members are the network's
/// modules, in execution order. For a different number of classes, replace the last module:
///
///     net->fc = net->replace_module("fc", torch::nn::Linear(512, 10));
///
/// Python: `torchvision.models.ResNet`, without `norm_layer`, because all normalization layers are
/// `BatchNorm2d`.
class ResNetImpl : public torch::nn::Cloneable<ResNetImpl> {
 public:
  /// Constructs a network with four layers. `layers` contains the number of blocks in each layer.
  /// @throw c10::Error if:
  /// - a size or count is below 1;
  /// - basic blocks are combined with groups, dilation, or a width per group other than 64.
  ResNetImpl(ResNetBlock block, std::array<int64_t, 4> layers, ResNetOptions options = {});

  void reset() override;

  /// Returns logits of shape `(N, num_classes)` for images of shape `(N, 3, H, W)`.
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Conv2d conv1 = nullptr;               ///< 7 x 7, stride 2, 64 channels
  torch::nn::BatchNorm2d bn1 = nullptr;            ///< norm of `conv1`
  torch::nn::ReLU relu = nullptr;                  ///< activation of `conv1`
  torch::nn::MaxPool2d maxpool = nullptr;          ///< 3 x 3, stride 2
  torch::nn::Sequential layer1 = nullptr;          ///< blocks of 64 planes
  torch::nn::Sequential layer2 = nullptr;          ///< blocks of 128 planes
  torch::nn::Sequential layer3 = nullptr;          ///< blocks of 256 planes
  torch::nn::Sequential layer4 = nullptr;          ///< blocks of 512 planes
  torch::nn::AdaptiveAvgPool2d avgpool = nullptr;  ///< mean over the image
  torch::nn::Linear fc = nullptr;                  ///< the last layer

 private:
  ResNetBlock block_;
  std::array<int64_t, 4> layers_;
  ResNetOptions options_;
};
/// Module holder for `ResNetImpl`.
/// Python: `torchvision.models.ResNet`.
TORCH_MODULE(ResNet);

/// Constructs a ResNet-18.
/// Python: `torchvision.models.resnet18`.
/// @throw c10::Error in the same cases as `ResNetImpl`.
ResNet resnet18(const ResNetOptions& options = {});
/// Constructs a ResNet-34.
/// Python: `torchvision.models.resnet34`.
/// @throw c10::Error in the same cases as `ResNetImpl`.
ResNet resnet34(const ResNetOptions& options = {});
/// Constructs a ResNet-50.
/// Python: `torchvision.models.resnet50`.
/// @throw c10::Error in the same cases as `ResNetImpl`.
ResNet resnet50(const ResNetOptions& options = {});

}  // namespace sconce::vision::models
