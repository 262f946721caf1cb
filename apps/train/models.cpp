#include "models.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "sconce/vision/models/resnet.hpp"
#include "sconce/vision/models/vision_transformer.hpp"

namespace train {

namespace {

namespace models = sconce::vision::models;
namespace nn = torch::nn;

// Sequentials are initialized with braces so that every compiler creates the layers in source
// order. Otherwise, the same seed could produce different weights than in Python.

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  // These convolutions have no bias, because the BatchNorm that follows has one.
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

// Maps (N, in, H, W) to (N, out, H / stride, W / stride) with two convolutions and a shortcut
// connection. The block is Cloneable, so that DataParallel can create replicas of it.
struct ResidualImpl : nn::Cloneable<ResidualImpl> {
  ResidualImpl(int64_t channels_in, int64_t channels_out, int64_t step)
      : in(channels_in), out(channels_out), stride(step) {
    reset();
  }

  void reset() override {
    body = nn::Sequential{conv3x3(in, out, stride), nn::BatchNorm2d(out), nn::ReLU(),
                          conv3x3(out, out, 1), nn::BatchNorm2d(out)};
    shortcut = nn::Sequential();
    if (stride != 1 || in != out) {
      shortcut =
          nn::Sequential{nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)),
                         nn::BatchNorm2d(out)};
    }
    register_module("body", body);
    register_module("shortcut", shortcut);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(body->forward(x) + (shortcut->is_empty() ? x : shortcut->forward(x)));
  }

  int64_t in, out, stride;
  nn::Sequential body{nullptr};
  nn::Sequential shortcut{nullptr};  // an empty shortcut means the identity
};
TORCH_MODULE(Residual);

nn::Sequential linear(int64_t pixels, int64_t classes) {
  return nn::Sequential{nn::Flatten(), nn::Linear(pixels, classes)};
}

nn::Sequential mlp(int64_t pixels, int64_t classes) {
  return nn::Sequential{nn::Flatten(), nn::Linear(pixels, 256), nn::ReLU(),
                        nn::Linear(256, classes)};
}

nn::Sequential lenet(torch::IntArrayRef image, int64_t classes) {
  const auto conv = [](int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 5).padding(2));
  };
  const int64_t features = 16 * (image[1] / 4) * (image[2] / 4);  // each pooling halves H and W
  return nn::Sequential{
      conv(image[0], 6), nn::ReLU(),          nn::MaxPool2d(2), conv(6, 16),
      nn::ReLU(),        nn::MaxPool2d(2),    nn::Flatten(),    nn::Linear(features, 120),
      nn::ReLU(),        nn::Linear(120, 84), nn::ReLU(),       nn::Linear(84, classes)};
}

nn::Sequential resnet(int64_t channels, int64_t classes) {
  return nn::Sequential{conv3x3(channels, 16, 1), nn::BatchNorm2d(16), nn::ReLU(),
                        Residual(16, 16, 1),      Residual(16, 16, 1),  // (N, 16, H, W)
                        Residual(16, 32, 2),      Residual(32, 32, 1),  // (N, 32, H/2, W/2)
                        Residual(32, 64, 2),      Residual(64, 64, 1),  // (N, 64, H/4, W/4)
                        nn::AdaptiveAvgPool2d(1), nn::Flatten(),       nn::Linear(64, classes)};
}

const std::vector<std::string>& vision_names() {
  static const std::vector<std::string> names = {"resnet18", "resnet34", "resnet50", "vit_b_16"};
  return names;
}

// Wraps a network from sconce::vision in a Sequential.
nn::Sequential vision_model(const std::string& name, torch::IntArrayRef image, int64_t classes) {
  TORCH_CHECK(image[0] == 3, "make_model: ", name, " requires images with 3 channels, got ",
              image[0]);
  if (name == "resnet18") return nn::Sequential(models::resnet18({.num_classes = classes}));
  if (name == "resnet34") return nn::Sequential(models::resnet34({.num_classes = classes}));
  if (name == "resnet50") return nn::Sequential(models::resnet50({.num_classes = classes}));
  TORCH_CHECK(image[1] == image[2], "make_model: vit_b_16 requires square images, got ", image[1],
              "x", image[2]);
  return nn::Sequential(models::vit_b_16({.image_size = image[1], .num_classes = classes}));
}

nn::Sequential make_network(const std::string& name, torch::IntArrayRef image, int64_t classes) {
  const int64_t pixels = c10::multiply_integers(image);
  if (name == "linear") return linear(pixels, classes);
  if (name == "mlp") return mlp(pixels, classes);
  TORCH_CHECK(image.size() == 3, "make_model: ", name,
              " requires images, got table rows of length ", pixels);
  if (is_vision_model(name)) return vision_model(name, image, classes);
  if (name == "resnet") return resnet(image[0], classes);
  TORCH_CHECK(name == "lenet", "make_model: unknown model ", name);
  TORCH_CHECK(image[1] >= 4 && image[2] >= 4,
              "make_model: lenet requires images of at least 4x4, got ", image[1], "x", image[2]);
  return lenet(image, classes);
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"linear", "mlp", "lenet", "resnet"};
    all.insert(all.end(), vision_names().begin(), vision_names().end());
    return all;
  }();
  return names;
}

bool is_vision_model(const std::string& name) {
  return std::find(vision_names().begin(), vision_names().end(), name) != vision_names().end();
}

ClassifierImpl::ClassifierImpl(std::string name, torch::IntArrayRef image, int64_t classes)
    : name_(std::move(name)), image_(image.vec()), classes_(classes) {
  ClassifierImpl::reset();
}

void ClassifierImpl::reset() {
  network_ = make_network(name_, image_, classes_);
  const auto named = is_vision_model(name_) ? network_->ptr(0) : network_.ptr();
  for (const auto& item : named->named_parameters(/*recurse=*/false)) {
    register_parameter(item.key(), item.value());
  }
  for (const auto& child : named->named_children()) register_module(child.key(), child.value());
  const std::string last = named_parameters().keys().back();
  last_layer_ = last.substr(0, last.rfind('.'));
}

void ClassifierImpl::train(bool on) {
  Cloneable::train(on);
  if (!is_frozen_) return;
  for (const auto& child : named_children()) {
    if (!(last_layer_ + '.').starts_with(child.key() + '.')) child.value()->eval();
  }
}

void ClassifierImpl::freeze() {
  is_frozen_ = true;
  for (const auto& item : named_parameters()) {
    if (!item.key().starts_with(last_layer_ + '.')) item.value().set_requires_grad(false);
  }
  train(is_training());
}

Classifier make_model(const std::string& name, torch::IntArrayRef image, int64_t classes) {
  return Classifier(name, image, classes);
}

}  // namespace train
