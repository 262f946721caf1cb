// Data parallel: a batch is cut into shards, each goes through a replica, the outputs are joined.
// Covers: T4.dp
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>
#include <mutex>

using sconce::repr;

// Keeps what the replicas get, which run at once.
std::vector<torch::Tensor> shards;
void keep(const torch::Tensor& shard) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  shards.push_back(shard);
}

// A replica is a clone, so the module is one that can be cloned.
struct SimpleNNImpl : torch::nn::Cloneable<SimpleNNImpl> {
  SimpleNNImpl() { reset(); }
  void reset() override {
    fc1 = register_module("fc1", torch::nn::Linear(3, 10));
    fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    keep(x);
    return fc2(torch::relu(fc1(x)));
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
TORCH_MODULE(SimpleNN);

int main() {
  const auto device = sconce::try_gpu();
  const bool two = sconce::num_gpus() > 1;
  torch::manual_seed(0);
  // T4.dp
  // note: nn.DataParallel holds the whole model on every GPU, so a model that is too large for one
  // is not helped. With one GPU or none Python's is the plain module, and does not say so. sconce's
  // takes any list of devices: here both of two GPUs, or the only device twice.
  sconce::nn::DataParallel model(SimpleNN(),
                                 {.device_ids = {device, two ? sconce::gpu(1) : device}});
  // note: it is no module, so what a module does is asked of model.module().
  model.module()->to(device);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model.module()->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3}).to(device);
  auto labels = torch::randint(0, 2, {100}).to(device);
  for (int epoch = 0; epoch < 5; ++epoch) {
    shards.clear();
    optimizer.zero_grad();
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    loss.backward();
    optimizer.step();
    std::printf("Epoch [%d/5], Loss: %.4f\n", epoch + 1, loss.item<double>());
  }

  std::cout << "Beyond the cells:\n";
  // note: in Python it is a module, and the names in its state dict gain "module.".
  for (const auto& item : model.module()->named_parameters()) {
    std::cout << "module." << item.key() << '\n';
  }
  std::cout << (two ? "two GPUs\n"
                    : "one device: Python's DataParallel is the module itself\n");
  // Which replica was first is chance, what they got is not. The twin has none on one
  // device, and sends both chunks through the module.
  const auto chunks = inputs.chunk(2);
  for (size_t i = 0; i < 2; ++i) {
    for (const auto& shard : shards) {
      if (!shard.cpu().equal(chunks[i].cpu())) continue;
      std::cout << "chunk " << i << ": " << repr(shard.sizes()) << " on "
                << shard.device() << '\n';
    }
  }
  auto joined = torch::cat(
      {model.module()->forward(chunks[0]), model.module()->forward(chunks[1])});
  std::cout << "close to the whole batch: "
            << repr(torch::allclose(joined, model.module()->forward(inputs))) << '\n';
}
