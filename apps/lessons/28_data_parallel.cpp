// Data parallel: a batch is cut into shards, each goes through the model, the outputs are joined.
// Covers: T4.dp
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::repr;

// A replica is a clone, so the module is one that can be cloned.
struct SimpleNNImpl : torch::nn::Cloneable<SimpleNNImpl> {
  SimpleNNImpl() { reset(); }
  void reset() override {
    fc1 = register_module("fc1", torch::nn::Linear(3, 10));
    fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(SimpleNN);

int main() {
  // note: nn.DataParallel holds the whole model on every GPU, so a model that is too large for one
  // is not helped. With one GPU or none Python's is the plain module, and does not say so. sconce's
  // takes any list of devices: here both of two GPUs, or the only device twice.
  const auto device = sconce::try_gpu();
  const bool two = sconce::num_gpus() > 1;
  std::cout << (two ? "two GPUs" : "one device: Python's DataParallel is the module itself")
            << '\n';
  torch::manual_seed(0);
  sconce::nn::DataParallel model(SimpleNN(),
                                 {.device_ids = {device, two ? sconce::gpu(1) : device}});
  model.to(device);
  // note: the names in its state dict gain "module.".
  for (const auto& item : model.named_parameters()) std::cout << item.key() << '\n';
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model.parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);

  for (int epoch = 0; epoch < 5; ++epoch) {
    auto outputs = model.forward(inputs);
    auto loss = criterion(outputs, labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::printf("Epoch [%d/5], Loss: %.4f\n", epoch + 1, loss.item<double>());
  }

  // What it does with two devices: cut, forward, join.
  std::vector<torch::Tensor> outputs;
  for (const auto& shard : inputs.chunk(2)) {
    std::cout << repr(shard.sizes()) << '\n';
    outputs.push_back(model.module()->forward(shard));
  }
  std::cout << repr(torch::allclose(torch::cat(outputs), model.forward(inputs))) << '\n';
}
