// Benchmarks convolutions in both memory formats: NCHW (the default) and NHWC (channels_last).

#include <torch/torch.h>

#include <memory>

#include "sconce/nn/memory_format.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

using torch::MemoryFormat;

// Runs one 3x3 convolution on `size` 28x28 images, from 32 channels to 64, without gradients.
template <MemoryFormat format>
Workload layer(int64_t size) {
  torch::manual_seed(0);
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(32, 64, 3).padding(1));
  sconce::nn::to_memory_format(*conv, format);
  const auto x = torch::randn({size, 32, 28, 28}).contiguous(format);
  const auto call = [=]() mutable {
    const torch::NoGradGuard no_grad;
    return conv(x);
  };
  return {call, {torch::nn::Conv2d(conv)(x).square().mean().item<double>()}};
}

// Runs a CNN training step on `size` images.
template <MemoryFormat format, Run run>
Workload cnn(int64_t size) {
  torch::manual_seed(0);
  torch::nn::Sequential net;  // constructor arguments may be evaluated in any order
  net->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 32, 3).padding(1)));
  net->push_back(torch::nn::BatchNorm2d(32));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::MaxPool2d(2));
  net->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3).padding(1)));
  net->push_back(torch::nn::BatchNorm2d(64));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::AdaptiveAvgPool2d(1));
  net->push_back(torch::nn::Flatten());
  net->push_back(torch::nn::Linear(64, 10));
  sconce::nn::to_memory_format(*net, format);
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  const auto x = torch::randn({size, 3, 32, 32}).contiguous(format);
  const auto target = torch::arange(size).remainder(10);
  return training_steps<run>(optimizer, {x, target}, [net = net.ptr()](const Tensors& batch) {
    return torch::nn::functional::cross_entropy(net->forward(batch[0]), batch[1]);
  });
}

// Runs a ResNet training step on `size` images.
template <auto make, int64_t classes, int64_t edge, Run run>
Workload resnet_step(int64_t size) {
  torch::manual_seed(0);
  auto net = make({.num_classes = classes});
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  const auto x = torch::randn({size, 3, edge, edge});
  const auto target = torch::arange(size).remainder(classes);
  return training_steps<run>(optimizer, {x, target}, [net = net.ptr()](const Tensors& batch) {
    return torch::nn::functional::cross_entropy(net->forward(batch[0]), batch[1]);
  });
}

template <Run run>
Workload resnet(int64_t size) {
  return resnet_step<sconce::vision::models::resnet18, 10, 96, run>(size);
}

template <Run run>
Workload resnet50(int64_t size) {
  return resnet_step<sconce::vision::models::resnet50, 1000, 224, run>(size);
}

}  // namespace

Workloads conv() {
  return {{"layer", layer<MemoryFormat::Contiguous>},
          {"layer_nhwc", layer<MemoryFormat::ChannelsLast>},
          {"cnn", cnn<MemoryFormat::Contiguous, Run::eager>},
          {"cnn_captured", cnn<MemoryFormat::Contiguous, Run::captured>},
          {"cnn_nhwc", cnn<MemoryFormat::ChannelsLast, Run::eager>},
          {"cnn_nhwc_captured", cnn<MemoryFormat::ChannelsLast, Run::captured>},
          {"resnet", resnet<Run::eager>},
          {"resnet_captured", resnet<Run::captured>},
          {"resnet_compiled", resnet<Run::compiled>},
          {"resnet50", resnet50<Run::eager>},
          {"resnet50_captured", resnet50<Run::captured>},
          {"resnet50_compiled", resnet50<Run::compiled>}};
}

}  // namespace bench
