// A model of one's own: its class, its parameters and buffers on the device, and a batch beside it.
// Covers: T4.model T4.SimpleNN T4.batch
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::repr;

// T4.SimpleNN
struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

void beyond(SimpleNN model, const torch::Tensor& inputs, const torch::Tensor& labels);

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);

  // T4.model
  // note: T4 makes a SimpleNN before the cell that defines it. In that order the compiler says
  // "error: 'SimpleNN' was not declared in this scope".
  SimpleNN model;
  model->to(device);

  // T4.batch
  // note: T4 moves inputs and labels that it never defines, and says "at once" of two copies.
  auto inputs = torch::randn({4, 3});
  auto labels = torch::randint(0, 2, {4});
  inputs = inputs.to(device), labels = labels.to(device);

  beyond(model, inputs, labels);
}

// Beyond the cells: the model's text and size, and what else moves with a module: its buffers.
void beyond(SimpleNN model, const torch::Tensor& inputs, const torch::Tensor& labels) {
  std::cout << repr(model) << '\n';
  int64_t count = 0;
  for (const auto& parameter : model->parameters()) count += parameter.numel();
  std::cout << count << " parameters on " << model->fc1->weight.device() << '\n';
  std::cout << inputs.device() << ' ' << labels.device() << '\n';
  std::cout << repr(model(inputs).detach()) << '\n';
  torch::nn::BatchNorm1d norm(3);
  norm->to(inputs.device());
  for (const auto& buffer : norm->named_buffers()) {
    std::cout << buffer.key() << ' ' << buffer->device() << '\n';
  }
}
