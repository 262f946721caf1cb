// Selects a device with if and else, and moves a model to it.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

namespace nn = torch::nn;

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

  // T4.check
  auto device = torch::Device("cpu");
  if (torch::cuda::is_available()) {
    device = torch::Device("cuda");
  } else {
    device = torch::Device("cpu");
  }

  // T4.model
  SimpleNN model;
  model->to(device);

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  for (auto& parameter : model->named_parameters())
    std::cout << parameter.key() << " on " << parameter->device() << '\n';
  nn::BatchNorm1d norm(3);
  norm->to(device);
  for (auto& buffer : norm->named_buffers())
    std::cout << buffer.key() << " on " << buffer->device() << '\n';
}
