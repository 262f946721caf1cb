#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <string>
#include <vector>

namespace train {

/// Returns the names for `make_model`.
const std::vector<std::string>& model_names();

/// Makes a classifier of images `(N, channels, height, width)` whose output is `(N, classes)`:
/// - linear: one layer from the pixels to the classes;
/// - mlp: one hidden layer of 256 with ReLU;
/// - lenet: LeNet-5 with ReLU and max pooling, padded so that 8x8 images fit too;
/// - resnet: a ResNet of three stages of 16, 32 and 64 channels with two blocks each.
torch::nn::Sequential make_model(const std::string& name, torch::IntArrayRef image,
                                 int64_t classes);

}  // namespace train
