#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace train {

/// Returns the valid model names for `make_model`.
const std::vector<std::string>& model_names();

/// Returns whether this is the name of a network in `sconce::vision::models`.
bool is_vision_model(const std::string& name);

/// A classifier whose tensors have the same names as in the network that it wraps. Create one with
/// `make_model`.
class ClassifierImpl : public torch::nn::Cloneable<ClassifierImpl> {
 public:
  ClassifierImpl(std::string name, torch::IntArrayRef image, int64_t classes);

  void reset() override;

  /// Sets training or evaluation mode. After `freeze`, all layers except the last one remain in
  /// evaluation mode.
  void train(bool on = true) override;

  /// Computes the logits `(N, classes)` of images `(N, channels, height, width)`.
  torch::Tensor forward(const torch::Tensor& x) { return network_->forward(x); }

  /// Freezes all layers except the last one. Their parameters no longer require gradients, and
  /// their BatchNorm layers use the running statistics without updating them.
  void freeze();

  /// Returns the name of the last layer, such as "fc".
  const std::string& last_layer() const { return last_layer_; }

  /// Returns the wrapped network, for a summary.
  torch::nn::Sequential& network() { return network_; }

 private:
  std::string name_;
  std::vector<int64_t> image_;
  int64_t classes_;
  bool is_frozen_ = false;
  std::string last_layer_ = {};
  torch::nn::Sequential network_ = nullptr;  // its layers are registered here by name
};
/// Module holder of `ClassifierImpl`.
TORCH_MODULE(Classifier);

/// Creates a classifier for images `(N, channels, height, width)` that outputs `(N, classes)`. The
/// first two networks also accept rows `(N, features)`. For regression, `classes` is 1. The
/// networks are:
/// - linear: one layer from the pixels to the classes;
/// - mlp: one hidden layer of 256 with ReLU;
/// - lenet: LeNet-5 with ReLU and max pooling, padded so that 8x8 images also fit;
/// - resnet: a ResNet with three stages of 16, 32, and 64 channels, with two blocks each;
/// - resnet18, resnet34, resnet50, and vit_b_16: torchvision's networks, with the same parameter
///   names.
/// @throw c10::Error if the name is unknown or the network does not support such images.
Classifier make_model(const std::string& name, torch::IntArrayRef image, int64_t classes);

}  // namespace train
