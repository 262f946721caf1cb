// Defines a network as a class and moves an instance of it to the device.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

namespace nn = torch::nn;

// T4.SimpleNN
struct SimpleNNImpl : nn::Module {
  nn::Linear fc1 = nullptr, fc2 = nullptr;

  SimpleNNImpl() {
    fc1 = register_module("fc1", nn::Linear(3, 10));
    fc2 = register_module("fc2", nn::Linear(10, 2));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1(x));
    x = fc2(x);
    return x;
  }
};
TORCH_MODULE(SimpleNN);

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");

  SimpleNN model;
  model->to(device);

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << sconce::repr(model) << '\n';
  int64_t count = 0;
  for (auto& parameter : model->parameters()) count += parameter.numel();
  std::cout << count << " parameters on " << model->fc1->weight.device() << '\n';
  auto x = torch::randn({4, 3}).to(device);
  std::cout << sconce::repr(model(x).detach()) << '\n';
  auto left_behind = torch::ones({4, 3}, device.is_cuda() ? torch::kCPU : torch::kMeta);
  try {
    model(left_behind);
  } catch (const c10::Error&) {
    std::cout << "a batch on " << left_behind.device() << " cannot be fed to a model on "
              << model->fc1->weight.device() << '\n';
  }
}
