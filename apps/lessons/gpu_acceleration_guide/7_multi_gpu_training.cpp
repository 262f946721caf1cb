// Trains on all GPUs in parallel. Each GPU processes part of the batch with a replica of
// the model.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

namespace nn = torch::nn;

struct SimpleNNImpl : nn::Cloneable<SimpleNNImpl> {
  nn::Linear fc1 = nullptr, fc2 = nullptr;

  SimpleNNImpl() { reset(); }

  void reset() override {
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

  // T4.dp
  sconce::nn::DataParallel model{SimpleNN()};
  model.module()->to(device);

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model.module()->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);
  for (int epoch = 0; epoch < 5; ++epoch) {
    optimizer.zero_grad();
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    loss.backward();
    optimizer.step();
    std::printf("Epoch [%d/5], Loss: %.4f\n", epoch + 1, loss.item<double>());
  }
  auto rows = [](SimpleNNImpl&, torch::Tensor x) {
    return torch::tensor({{x.size(0), int64_t{x.get_device()}}}, x.device());
  };
  std::cout << "rows and GPU of each replica (-1 is the CPU):\n"
            << sconce::repr(model.call(rows, inputs)) << '\n';
  if (torch::cuda::device_count() < 2) std::cout << "needs two GPUs to split the batch\n";
}
