// A training step of 50 linear layers of 64 under DistributedDataParallel, for distributed.py,
// which runs this as several ranks, in turn with Python. Rank 0 prints a line "name seconds", the
// median of the steps; a group of one the bare module's too, measured in turn.

#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/nn/distributed_data_parallel.hpp"
#include "sconce/stopwatch.hpp"

namespace {

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  const auto group = sconce::distributed::ProcessGroup::init();
  torch::nn::Sequential layers;
  for (int i = 0; i < 50; ++i) layers->push_back(torch::nn::Linear(64, 64));
  torch::optim::SGD optimizer(layers->parameters(), 0.01);
  sconce::nn::DistributedDataParallel model(layers, group);
  const auto x = torch::randn({16, 64});

  const auto step = [&](const auto& forward) {
    const sconce::Stopwatch watch;
    optimizer.zero_grad();
    forward(x).sum().backward();
    optimizer.step();
    return watch.seconds();
  };
  std::vector<double> wrapped, bare;
  for (int i = 0; i < 320; ++i) {
    const double seconds = step([&](const auto& input) { return model(input); });
    if (i >= 20) wrapped.push_back(seconds);
    if (group.world_size() > 1) continue;
    const double alone = step([&](const auto& input) { return layers->forward(input); });
    if (i >= 20) bare.push_back(alone);
  }
  if (group.rank() == 0) std::cout << "sconce-ddp " << median(wrapped) << '\n';
  if (!bare.empty()) std::cout << "bare " << median(bare) << '\n';
}
