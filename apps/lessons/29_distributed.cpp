// Distributed data parallel: each process trains on its rows, and all share the mean gradient.
// Covers: T4.ddp
// Processes: 2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

int main() {
  // note: T4 starts no processes, names no rank and no device for each, cuts no data between them
  // and never ends the group. torchrun starts them; with fewer GPUs than ranks they share them, by
  // Gloo, for NCCL is for a GPU a rank. The group ends with its scope.
  bool refused = false;
  if (sconce::num_gpus() == 0) {
    try {  // T4.ddp, as told
      const auto group = sconce::distributed::ProcessGroup::init({.backend = "nccl"});
    } catch (const c10::Error&) {
      refused = true;
    }
  }
  // T4.ddp
  const auto group = sconce::distributed::ProcessGroup::init();
  const int world_size = group.world_size();
  const auto device = group.device();
  torch::manual_seed(0);
  SimpleNN module;
  module->to(device);
  sconce::nn::DistributedDataParallel model(module, group);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(module->parameters(), /*lr=*/0.01);

  auto rows = sconce::data::DistributedSampler(100, group, {.shuffle = false}).indices();
  auto inputs = torch::randn({100, 3}).index_select(0, rows).to(device);
  auto labels = torch::randint(0, 2, {100}).index_select(0, rows).to(device);

  if (group.rank() == 0) std::printf("Beyond the cells:\n");
  if (group.rank() == 0 && refused) std::printf("NCCL is refused without a GPU\n");
  for (int epoch = 0; epoch < 5; ++epoch) {
    optimizer.zero_grad();
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    loss.backward();
    optimizer.step();
    auto losses = group.all_gather(loss);
    if (group.rank() > 0) continue;
    std::printf("Epoch [%d/5], Loss of each rank:", epoch + 1);
    for (const auto& each : losses) std::printf(" %.4f", each.item<double>());
    std::printf("\n");
  }

  auto sums = group.all_gather(
      torch::cat({module->fc1->weight.flatten(), module->fc2->bias}).sum());
  for (int other = 0; group.rank() == 0 && other < world_size; ++other) {
    std::printf("rank %d of %d: parameters sum to %.6f\n", other, world_size,
                sums[other].item<double>());
  }
}
