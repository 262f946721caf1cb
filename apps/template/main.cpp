#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

namespace nn = torch::nn;

int main() {
  sconce::tune_threads();
  sconce::seed_everything(0);
  const auto device = sconce::try_gpu();

  // Two classes of points in the plane, inside and outside a circle.
  const auto X = torch::randn({1000, 2}).to(device);
  const auto y = (X.square().sum(1) > 1.4).to(torch::kLong);
  sconce::data::Batches train({X, y}, {.batch_size = 50, .shuffle = true});

  nn::Sequential net{nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 2)};
  net->to(device);
  sconce::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(0.01));
  sconce::EpochLogger lines(std::cout);
  sconce::Trainer trainer({.max_epochs = 10, .device = device});
  trainer.fit(net, optimizer, {.train = train, .callbacks = {&lines}});
}
