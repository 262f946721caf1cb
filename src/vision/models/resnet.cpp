#include "sconce/vision/models/resnet.hpp"

#include <ATen/ops/flatten.h>
#include <c10/util/Exception.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <utility>

namespace sconce::vision::models {

namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::ReLU;
using torch::nn::ReLUOptions;
using torch::nn::Sequential;

// The convolution sizes in one block.
struct Sizes {
  int64_t in, planes;  // channels
  int64_t stride = 1, groups = 1, base_width = 64, dilation = 1;
};

Conv2d conv1x1(int64_t in, int64_t out, int64_t stride = 1) {
  return Conv2d(Conv2dOptions(in, out, 1).stride(stride).bias(false));
}

Conv2d conv3x3(int64_t in, int64_t out, const Sizes& of) {
  return Conv2d(Conv2dOptions(in, out, 3)
                    .stride(of.stride)
                    .padding(of.dilation)
                    .dilation(of.dilation)
                    .groups(of.groups)
                    .bias(false));
}

// Returns a module that resizes a block's input to the size of the block's output, or null if the
// sizes already match.
Sequential make_downsample(const Sizes& of, int64_t out) {
  if (of.stride == 1 && of.in == out) return nullptr;
  Sequential downsample;
  downsample->push_back(conv1x1(of.in, out, of.stride));
  downsample->push_back(BatchNorm2d(out));
  return downsample;
}

struct BasicBlockImpl : torch::nn::Cloneable<BasicBlockImpl> {
  static constexpr int64_t expansion = 1;

  explicit BasicBlockImpl(const Sizes& of) : sizes(of) { BasicBlockImpl::reset(); }

  void reset() override {
    downsample = make_downsample(sizes, sizes.planes);  // drawn first, registered last
    const Sizes second = {.in = sizes.planes, .planes = sizes.planes};
    conv1 = register_module("conv1", conv3x3(sizes.in, sizes.planes, sizes));
    bn1 = register_module("bn1", BatchNorm2d(sizes.planes));
    relu = register_module("relu", ReLU(ReLUOptions(/*inplace=*/true)));
    conv2 = register_module("conv2", conv3x3(sizes.planes, sizes.planes, second));
    bn2 = register_module("bn2", BatchNorm2d(sizes.planes));
    if (downsample) register_module("downsample", downsample);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto out = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(out += downsample ? downsample->forward(x) : x);
  }

  BatchNorm2d& last_norm() { return bn2; }

  Sizes sizes;
  Conv2d conv1 = nullptr, conv2 = nullptr;
  BatchNorm2d bn1 = nullptr, bn2 = nullptr;
  ReLU relu = nullptr;
  Sequential downsample = nullptr;
};
TORCH_MODULE(BasicBlock);

struct BottleneckImpl : torch::nn::Cloneable<BottleneckImpl> {
  static constexpr int64_t expansion = 4;

  explicit BottleneckImpl(const Sizes& of) : sizes(of) { BottleneckImpl::reset(); }

  void reset() override {
    const int64_t width = sizes.planes * sizes.base_width / 64 * sizes.groups;
    const int64_t out = sizes.planes * expansion;
    downsample = make_downsample(sizes, out);  // drawn first, registered last
    conv1 = register_module("conv1", conv1x1(sizes.in, width));
    bn1 = register_module("bn1", BatchNorm2d(width));
    conv2 = register_module("conv2", conv3x3(width, width, sizes));
    bn2 = register_module("bn2", BatchNorm2d(width));
    conv3 = register_module("conv3", conv1x1(width, out));
    bn3 = register_module("bn3", BatchNorm2d(out));
    relu = register_module("relu", ReLU(ReLUOptions(/*inplace=*/true)));
    if (downsample) register_module("downsample", downsample);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    auto out = relu(bn1(conv1(x)));
    out = relu(bn2(conv2(out)));
    out = bn3(conv3(out));
    return relu(out += downsample ? downsample->forward(x) : x);
  }

  BatchNorm2d& last_norm() { return bn3; }

  Sizes sizes;
  Conv2d conv1 = nullptr, conv2 = nullptr, conv3 = nullptr;
  BatchNorm2d bn1 = nullptr, bn2 = nullptr, bn3 = nullptr;
  ReLU relu = nullptr;
  Sequential downsample = nullptr;
};
TORCH_MODULE(Bottleneck);

// Returns the blocks in a layer. The first block may use a different stride and dilation than the
// others.
template <class Block>
Sequential make_layer(Sizes sizes, int64_t blocks, int64_t dilation) {
  Sequential layer;
  for (int64_t i = 0; i < blocks; ++i) {
    layer->push_back(Block(sizes));
    sizes = {.in = sizes.planes * Block::Impl::expansion,
             .planes = sizes.planes,
             .groups = sizes.groups,
             .base_width = sizes.base_width,
             .dilation = dilation};
  }
  return layer;
}

// The four layers.
template <class Block>
std::array<Sequential, 4> make_layers(const std::array<int64_t, 4>& blocks,
                                      const ResNetOptions& options) {
  std::array<Sequential, 4> layers = {nullptr, nullptr, nullptr, nullptr};
  int64_t in = 64, dilation = 1;
  for (size_t i = 0; i < 4; ++i) {
    const int64_t planes = int64_t{64} << i, before = dilation;
    int64_t stride = i == 0 ? 1 : 2;
    if (i > 0 && options.replace_stride_with_dilation[i - 1]) dilation *= std::exchange(stride, 1);
    layers[i] = make_layer<Block>(
        {in, planes, stride, options.groups, options.width_per_group, before}, blocks[i], dilation);
    in = planes * Block::Impl::expansion;
  }
  return layers;
}

void check_resnet(ResNetBlock block, const std::array<int64_t, 4>& layers,
                  const ResNetOptions& options) {
  constexpr auto error_prefix = "sconce::vision::models::ResNet: expected ";
  TORCH_CHECK(std::min({layers[0], layers[1], layers[2], layers[3]}) >= 1, error_prefix,
              "at least 1 block in each layer, got ", at::IntArrayRef(layers));
  TORCH_CHECK(options.num_classes >= 1, error_prefix, "num_classes to be at least 1, got ",
              options.num_classes);
  TORCH_CHECK(options.groups >= 1, error_prefix, "groups to be at least 1, got ", options.groups);
  TORCH_CHECK(options.width_per_group >= 1, error_prefix, "width_per_group to be at least 1, got ",
              options.width_per_group);
  if (block == ResNetBlock::bottleneck) return;
  TORCH_CHECK(options.groups == 1 && options.width_per_group == 64, error_prefix,
              "groups 1 and width_per_group 64 for basic blocks, got ", options.groups, " and ",
              options.width_per_group);
  TORCH_CHECK(options.replace_stride_with_dilation == (std::array<bool, 3>{}), error_prefix,
              "basic blocks without dilation, got replace_stride_with_dilation");
}

// Initializes the modules in the same order and to the same values as torchvision.
void init_resnet(torch::nn::Module& net, bool zero_init_residual) {
  for (const auto& module : net.modules(/*include_self=*/false)) {
    if (auto* conv = module->as<Conv2d>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
  if (!zero_init_residual) return;
  const torch::NoGradGuard no_grad;
  for (const auto& module : net.modules(/*include_self=*/false)) {
    if (auto* basic = module->as<BasicBlock>()) basic->last_norm()->weight.zero_();
    if (auto* bottleneck = module->as<Bottleneck>()) bottleneck->last_norm()->weight.zero_();
  }
}

}  // namespace

ResNetImpl::ResNetImpl(ResNetBlock block, std::array<int64_t, 4> layers, ResNetOptions options)
    : block_(block), layers_(layers), options_(options) {
  check_resnet(block, layers, options);
  ResNetImpl::reset();
}

void ResNetImpl::reset() {
  const bool basic = block_ == ResNetBlock::basic;
  conv1 =
      register_module("conv1", Conv2d(Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)));
  bn1 = register_module("bn1", BatchNorm2d(64));
  relu = register_module("relu", ReLU(ReLUOptions(/*inplace=*/true)));
  maxpool = register_module(
      "maxpool", torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));
  auto layers = basic ? make_layers<BasicBlock>(layers_, options_)
                      : make_layers<Bottleneck>(layers_, options_);
  layer1 = register_module("layer1", layers[0]);
  layer2 = register_module("layer2", layers[1]);
  layer3 = register_module("layer3", layers[2]);
  layer4 = register_module("layer4", layers[3]);
  avgpool = register_module("avgpool", torch::nn::AdaptiveAvgPool2d(1));
  const int64_t features = 512 * (basic ? BasicBlockImpl::expansion : BottleneckImpl::expansion);
  fc = register_module("fc", torch::nn::Linear(features, options_.num_classes));
  init_resnet(*this, options_.zero_init_residual);
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& x) {
  auto out = maxpool(relu(bn1(conv1(x))));
  out = layer1->forward(out);
  out = layer2->forward(out);
  out = layer3->forward(out);
  out = layer4->forward(out);
  return fc(at::flatten(avgpool(out), 1));
}

ResNet resnet18(const ResNetOptions& options) {
  return ResNet(ResNetBlock::basic, std::array<int64_t, 4>{2, 2, 2, 2}, options);
}

ResNet resnet34(const ResNetOptions& options) {
  return ResNet(ResNetBlock::basic, std::array<int64_t, 4>{3, 4, 6, 3}, options);
}

ResNet resnet50(const ResNetOptions& options) {
  return ResNet(ResNetBlock::bottleneck, std::array<int64_t, 4>{3, 4, 6, 3}, options);
}

}  // namespace sconce::vision::models
