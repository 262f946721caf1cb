// Mixed precision: autocast computes in 16 bits, and a scaler keeps small gradients above 0.
// Covers: T4.amp
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::repr;

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

// note: T4 defines neither loader, loss nor optimizer, and never moves the data; without CUDA its
// torch.cuda.amp warns and turns itself off. Here the device is named, so that it is on on the CPU
// too; torch.cuda.amp is deprecated for torch.amp.
void train(torch::Device device, torch::ScalarType dtype, int steps,
           const sconce::amp::GradScalerOptions& options) {
  torch::manual_seed(0);
  SimpleNN model;
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  sconce::amp::GradScaler scaler(options);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);

  torch::Tensor outputs, loss;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    {
      sconce::amp::AutocastGuard autocast(device.type(),
                                          {.dtype = dtype, .enabled = dtype != torch::kFloat});
      outputs = model(inputs);
      loss = torch::nn::functional::cross_entropy(outputs, labels);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    std::printf("  step %d: loss %.4f, scale %.0f\n", step + 1, loss.item<double>(),
                scaler.get_scale());
  }
  std::cout << "  outputs " << repr(outputs.scalar_type()) << ", loss " << repr(loss.scalar_type())
            << ", weights " << repr(model->fc1->weight.scalar_type()) << '\n';
}

int main() {
  const auto device = sconce::try_gpu();
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    std::cout << repr(dtype) << '\n';
    train(device, dtype, 4, {.device = device.type(), .enabled = dtype == torch::kHalf});
  }

  // A scale that is too large makes gradients inf: such a step is skipped and the scale halved,
  // until it fits; after growth_interval good steps it doubles.
  std::cout << "from a scale of 2**24\n";
  train(device, torch::kHalf, 8,
        {.device = device.type(), .init_scale = 1 << 24, .growth_interval = 2});
}
