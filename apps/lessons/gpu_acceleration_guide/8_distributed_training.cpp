// Trains in two processes. Each process uses half of the rows, and the gradients are
// averaged.
// Processes: 2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
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

  // T4.ddp
  auto group = sconce::distributed::ProcessGroup::init(
      {.backend = torch::cuda::device_count() > 1 ? "nccl" : ""});  // guard
  auto device = group.device();

  SimpleNN model;
  model->to(device);
  sconce::nn::DistributedDataParallel ddp_model(model, group);

  // Beyond the tutorial
  if (group.rank() == 0) std::cout << "Beyond the tutorial:\n";
  nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  sconce::data::DistributedSampler sampler(100, group, {.shuffle = false});
  auto rows = sampler.indices();
  auto inputs = torch::randn({100, 3}).index_select(0, rows).to(device);
  auto labels = torch::randint(0, 2, {100}).index_select(0, rows).to(device);
  for (int epoch = 0; epoch < 5; ++epoch) {
    optimizer.zero_grad();
    auto outputs = ddp_model(inputs);
    auto loss = criterion(outputs, labels);
    loss.backward();
    optimizer.step();
    auto mean = loss.detach() / group.world_size();
    group.all_reduce(mean);
    if (group.rank() == 0)
      std::printf("Epoch [%d/5], Loss: %.4f\n", epoch + 1, mean.item<double>());
  }
  auto sums = group.all_gather(model->fc1->weight.detach().sum());
  for (int rank = 0; group.rank() == 0 && rank < group.world_size(); ++rank)
    std::printf("sum of the weights on rank %d of %d: %.6f\n", rank, group.world_size(),
                sums[rank].item<double>());
}
