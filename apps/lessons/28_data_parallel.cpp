// Data parallel: a batch is cut into shards, each goes through a replica, the outputs are joined.
// Covers: T4.dp
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

using sconce::repr;

// note: a replica is a clone, and `clone()` calls `reset()` to make the layers again. So the base
// is Cloneable, and the layers are made in `reset()`.
struct SimpleNNImpl : torch::nn::Cloneable<SimpleNNImpl> {
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
  SimpleNNImpl() { reset(); }
  void reset() override {
    fc1 = register_module("fc1", torch::nn::Linear(3, 10));
    fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

void beyond(sconce::nn::DataParallel<SimpleNNImpl>& model, const torch::Tensor& inputs);

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);

  // T4.dp
  // note: each GPU holds the whole model, so a model that is too large for one is not helped.
  // note: it is no module, so what a module does is asked of `model.module()`, whose parameters
  // keep their names; in Python they gain "module.".
  sconce::nn::DataParallel model{SimpleNN()};
  model.module()->to(device);
  torch::nn::CrossEntropyLoss criterion;
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

  beyond(model, inputs);
}

// Beyond the cells: the rows of each shard and its GPU, -1 for the CPU, joined as outputs are.
void beyond(sconce::nn::DataParallel<SimpleNNImpl>& model, const torch::Tensor& inputs) {
  const auto shard = [](SimpleNNImpl&, const torch::Tensor& x) {
    return torch::tensor({{x.size(0), int64_t{x.get_device()}}}, x.device());
  };
  const auto shards = model.call(shard, inputs);
  std::printf("rows and GPU of each shard:\n%s\n", repr(shards).c_str());
  // note: Python's is the plain module then, too, and does not say so.
  if (sconce::num_gpus() < 2) std::printf("fewer than two GPUs: the module itself\n");
  const auto chunks = inputs.chunk(2);
  SimpleNN module(model.module());
  const auto joined = torch::cat({module(chunks[0]), module(chunks[1])});
  const bool close = torch::allclose(joined, model(inputs));
  std::printf("two chunks, close to the whole batch: %s\n", repr(close).c_str());
}
