// Distributed data parallel: each process trains on its rows, and all share the mean gradient.
// Covers: T4.ddp
// Processes: 2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

using sconce::distributed::ProcessGroup;

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

void beyond(const ProcessGroup& group, const torch::Tensor& weight);

int main() {
  // T4.ddp
  // note: T4 has no launcher, rank, device for each rank or sampler, and never ends the group. Here
  // torchrun starts the ranks, `init` reads its variables, and the group ends with its scope. With
  // fewer GPUs than ranks the backend is Gloo, for NCCL wants a GPU for each rank.
  const auto group = ProcessGroup::init();
  const auto device = group.device();
  torch::manual_seed(0);
  // note: Python's model becomes the wrapper. In C++ that is another type, so it has its own name.
  SimpleNN module;
  module->to(device);
  sconce::nn::DistributedDataParallel model(module, group);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(module->parameters(), /*lr=*/0.01);
  auto rows = sconce::data::DistributedSampler(100, group, {.shuffle = false}).indices();
  auto inputs = torch::randn({100, 3}).index_select(0, rows).to(device);
  auto labels = torch::randint(0, 2, {100}).index_select(0, rows).to(device);
  for (int epoch = 0; epoch < 5; ++epoch) {
    optimizer.zero_grad();
    auto outputs = model(inputs);
    auto loss = criterion(outputs, labels);
    loss.backward();
    optimizer.step();
    auto mean = loss.detach() / group.world_size();
    group.all_reduce(mean);
    if (group.rank() > 0) continue;
    std::printf("Epoch [%d/5], Loss: %.4f\n", epoch + 1, mean.item<double>());
  }

  beyond(group, module->fc1->weight);
}

// Beyond the cells: each rank had other rows, and all have the same weights.
void beyond(const ProcessGroup& group, const torch::Tensor& weight) {
  auto sums = group.all_gather(weight.detach().sum());
  for (int rank = 0; group.rank() == 0 && rank < group.world_size(); ++rank) {
    std::printf("rank %d of %d: weights sum to %.6f\n", rank, group.world_size(),
                sums[rank].item<double>());
  }
  // note: without a launcher the process is a group of one.
  if (group.world_size() > 1) return;
  std::printf(
      "For two ranks: torchrun --standalone --nproc-per-node=2 --no-python "
      "build/default/bin/lessons/29_distributed\n");
}
