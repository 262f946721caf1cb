// Trains a network for five epochs on the device, and then with mixed precision.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

namespace nn = torch::nn;

// T4.loop
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

  nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);

  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);

  auto num_epochs = 5;
  for (int epoch = 0; epoch < num_epochs; ++epoch) {
    optimizer.zero_grad();
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    loss.backward();
    optimizer.step();

    std::printf("Epoch [%d/%d], Loss: %.4f\n", epoch + 1, num_epochs,
                loss.item<double>());
  }

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  sconce::amp::GradScaler scaler(
      {.device = device.type(), .init_scale = 1 << 22, .growth_interval = 2});
  torch::Tensor outputs, loss;
  for (int epoch = 0; epoch < num_epochs; ++epoch) {
    optimizer.zero_grad();
    {
      sconce::amp::AutocastGuard autocast(device.type(), {.dtype = torch::kHalf});
      outputs = model(inputs);
      loss = criterion(outputs, labels);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    std::printf("Loss: %.4f, scale: %.0f\n", loss.item<double>(), scaler.get_scale());
  }
  std::cout << "outputs: " << sconce::repr(outputs.scalar_type())
            << ", loss: " << sconce::repr(loss.scalar_type())
            << ", weights: " << sconce::repr(model->fc1->weight.scalar_type()) << '\n';
}
