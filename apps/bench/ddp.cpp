// Benchmarks a training step of 50 linear layers with 64 units under DistributedDataParallel, on
// `size` Gloo ranks. Rank 0 is the worker process. The worker forks the other ranks, each of which
// runs a step whenever rank 0 does.

#include <torch/torch.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/optim/sgd.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

using sconce::distributed::ProcessGroup;

torch::nn::Sequential make_layers() {
  torch::manual_seed(0);
  torch::nn::Sequential layers;
  for (int i = 0; i < 50; ++i) layers->push_back(torch::nn::Linear(64, 64));
  return layers;
}

template <class Forward>
Workload ddp_steps(const torch::nn::Sequential& layers, const Forward& forward) {
  const auto optimizer = std::make_shared<sconce::optim::SGD>(layers->parameters(), 0.01);
  const auto x = torch::randn({16, 64});
  return training_steps(optimizer, {x},
                        [=](const Tensors& batch) { return forward(batch[0]).square().mean(); });
}

Workload ddp_steps_of_rank(const std::string& meeting, int rank, int ranks) {
  const auto group = ProcessGroup::init(
      {.backend = "gloo", .init_method = "file://" + meeting, .world_size = ranks, .rank = rank});
  const auto layers = make_layers();
  const auto model =
      std::make_shared<sconce::nn::DistributedDataParallel<torch::nn::SequentialImpl>>(layers,
                                                                                       group);
  return ddp_steps(layers, [=](const torch::Tensor& x) { return model->forward(x); });
}

// Keeps stepping until rank 0 exits, which makes the gradient reduction throw.
[[noreturn]] void follow(const std::string& meeting, int rank, int ranks) {
  try {
    const auto workload = ddp_steps_of_rank(meeting, rank, ranks);
    while (true) workload.call();
  } catch (...) {
    _exit(0);
  }
}

Workload ddp_step(int64_t ranks) {
  const auto file = "sconce-bench-" + std::to_string(getpid());
  const auto meeting = (std::filesystem::temp_directory_path() / file).string();
  for (int rank = 1; rank < ranks; ++rank) {
    if (fork() == 0) follow(meeting, rank, static_cast<int>(ranks));
  }
  auto workload = ddp_steps_of_rank(meeting, 0, static_cast<int>(ranks));
  std::filesystem::remove(meeting);
  return workload;
}

// Runs the unwrapped module, as a baseline for a single-rank group.
Workload ddp_bare(int64_t) {
  const auto layers = make_layers();
  return ddp_steps(layers,
                   [net = layers.ptr()](const torch::Tensor& x) { return net->forward(x); });
}

}  // namespace

Workloads ddp() {
  return {{"step", ddp_step}, {"bare", ddp_bare}};
}

}  // namespace bench
