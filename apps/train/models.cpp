#include "models.hpp"

#include <torch/torch.h>

namespace train {

namespace {

namespace nn = torch::nn;

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  // No bias: the BatchNorm that follows has one.
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

// (N, in, H, W) to (N, out, H / stride, W / stride): two convolutions beside a shortcut. It is
// Cloneable, so that DataParallel can make replicas of it.
struct ResidualImpl : nn::Cloneable<ResidualImpl> {
  ResidualImpl(int64_t channels_in, int64_t channels_out, int64_t step)
      : in(channels_in), out(channels_out), stride(step) {
    reset();
  }

  void reset() override {
    body = nn::Sequential(conv3x3(in, out, stride), nn::BatchNorm2d(out), nn::ReLU(),
                          conv3x3(out, out, 1), nn::BatchNorm2d(out));
    shortcut = nn::Sequential();
    if (stride != 1 || in != out) {
      shortcut =
          nn::Sequential(nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)),
                         nn::BatchNorm2d(out));
    }
    register_module("body", body);
    register_module("shortcut", shortcut);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    return torch::relu(body->forward(x) + (shortcut->is_empty() ? x : shortcut->forward(x)));
  }

  int64_t in, out, stride;
  nn::Sequential body{nullptr};
  nn::Sequential shortcut{nullptr};  // empty: the input itself
};
TORCH_MODULE(Residual);

nn::Sequential linear(int64_t pixels, int64_t classes) {
  return nn::Sequential(nn::Flatten(), nn::Linear(pixels, classes));
}

nn::Sequential mlp(int64_t pixels, int64_t classes) {
  return nn::Sequential(nn::Flatten(), nn::Linear(pixels, 256), nn::ReLU(),
                        nn::Linear(256, classes));
}

nn::Sequential lenet(torch::IntArrayRef image, int64_t classes) {
  const auto conv = [](int64_t in, int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 5).padding(2));
  };
  const int64_t features = 16 * (image[1] / 4) * (image[2] / 4);  // each pooling halves the sides
  return nn::Sequential(conv(image[0], 6), nn::ReLU(), nn::MaxPool2d(2), conv(6, 16), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Flatten(), nn::Linear(features, 120), nn::ReLU(),
                        nn::Linear(120, 84), nn::ReLU(), nn::Linear(84, classes));
}

nn::Sequential resnet(int64_t channels, int64_t classes) {
  return nn::Sequential(conv3x3(channels, 16, 1), nn::BatchNorm2d(16), nn::ReLU(),
                        Residual(16, 16, 1), Residual(16, 16, 1),  // (N, 16, H, W)
                        Residual(16, 32, 2), Residual(32, 32, 1),  // (N, 32, H/2, W/2)
                        Residual(32, 64, 2), Residual(64, 64, 1),  // (N, 64, H/4, W/4)
                        nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(64, classes));
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = {"linear", "mlp", "lenet", "resnet"};
  return names;
}

torch::nn::Sequential make_model(const std::string& name, torch::IntArrayRef image,
                                 int64_t classes) {
  const int64_t pixels = c10::multiply_integers(image);
  if (name == "linear") return linear(pixels, classes);
  if (name == "mlp") return mlp(pixels, classes);
  if (name == "resnet") return resnet(image[0], classes);
  TORCH_CHECK(name == "lenet", "make_model: unknown model ", name);
  TORCH_CHECK(image[1] >= 4 && image[2] >= 4,
              "make_model: lenet takes images of at least 4x4, got ", image[1], "x", image[2]);
  return lenet(image, classes);
}

}  // namespace train
