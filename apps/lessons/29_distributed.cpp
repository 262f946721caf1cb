// Distributed data parallel: each process trains on its rows, and all share the mean gradient.
// Covers: T4.ddp
// Processes: 2
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// Returns the float32 tensor of every rank, in rank order, by way of torchrun's store.
// note: this waits for sconce::distributed::ProcessGroup and sconce::nn::DistributedDataParallel.
std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor, int rank, int world_size) {
  if (world_size == 1) return {tensor};
  static c10d::TCPStore store(
      environment("MASTER_ADDR", "127.0.0.1"),
      {.port = static_cast<uint16_t>(std::stoi(environment("MASTER_PORT", "29500")))});
  static int call = 0;
  const std::string key = "all_gather/" + std::to_string(call++) + '/';
  auto mine = tensor.detach().cpu().contiguous();
  const auto* bytes = static_cast<const uint8_t*>(mine.data_ptr());
  store.set(key + std::to_string(rank), {bytes, bytes + mine.nbytes()});
  std::vector<torch::Tensor> all;
  for (int other = 0; other < world_size; ++other) {
    auto received = store.get(key + std::to_string(other));
    all.push_back(torch::from_blob(received.data(), mine.sizes()).clone().to(tensor.device()));
  }
  return all;
}

int main() {
  // note: T4 starts no processes, names no rank and no device for each, cuts no data between them
  // and never ends the group. torchrun starts them; with fewer GPUs than ranks all are on the CPU.
  const int rank = std::stoi(environment("RANK", "0"));
  const int world_size = std::stoi(environment("WORLD_SIZE", "1"));
  const auto device = sconce::num_gpus() < world_size ? sconce::cpu() : sconce::gpu(rank);
  torch::manual_seed(0);
  SimpleNN model;
  model->to(device);
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);

  // Rank r takes the rows r, r + world_size, ..., as DistributedSampler does without shuffling.
  auto rows = torch::arange(rank, 100, world_size);
  auto inputs = torch::randn({100, 3}).index_select(0, rows).to(device);
  auto labels = torch::randint(0, 2, {100}).index_select(0, rows).to(device);

  for (int epoch = 0; epoch < 5; ++epoch) {
    auto loss = criterion(model(inputs), labels);
    optimizer.zero_grad();
    loss.backward();
    for (auto& parameter : model->parameters()) {
      auto gradients = all_gather(parameter.grad() / world_size, rank, world_size);
      parameter.mutable_grad() = torch::stack(gradients).sum(0);
    }
    optimizer.step();
    auto losses = all_gather(loss, rank, world_size);
    if (rank > 0) continue;
    std::printf("Epoch [%d/5], Loss of each rank:", epoch + 1);
    for (const auto& each : losses) std::printf(" %.4f", each.item<double>());
    std::printf("\n");
  }

  auto sums = all_gather(torch::cat({model->fc1->weight.flatten(), model->fc2->bias}).sum(), rank,
                         world_size);
  for (int other = 0; rank == 0 && other < world_size; ++other) {
    std::printf("rank %d of %d: parameters sum to %.6f\n", other, world_size,
                sums[other].item<double>());
  }
}
