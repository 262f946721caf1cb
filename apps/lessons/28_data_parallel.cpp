// Data parallel: a batch is cut into shards, each goes through the model, the outputs are joined.
// Covers: T4.dp
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

int main() {
  // note: nn.DataParallel holds the whole model on every GPU, so a model that is too large for one
  // is not helped. With one GPU or none it is the plain module, and does not say so. The names in
  // its state dict gain "module.".
  // note: this waits for sconce::nn::DataParallel. Until then both sides train on one device, and
  // the shards go one after the other through the module.
  const auto device = sconce::try_gpu();
  std::cout << "one device: DataParallel is the module itself\n";
  torch::manual_seed(0);
  SimpleNN model;
  model->to(device);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);

  for (int epoch = 0; epoch < 5; ++epoch) {
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::printf("Epoch [%d/5], Loss: %.4f\n", epoch + 1, loss.item<double>());
  }

  // What DataParallel does with two devices: cut, forward, join.
  std::vector<torch::Tensor> outputs;
  for (const auto& shard : inputs.chunk(2)) {
    std::cout << repr(shard.sizes()) << '\n';
    outputs.push_back(model(shard));
  }
  std::cout << repr(torch::allclose(torch::cat(outputs), model(inputs))) << '\n';
}
