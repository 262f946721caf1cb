// A two-input model that predicts a user's movie rating from user factors and movie factors.
#include <torch/torch.h>
#include <cstdio>
#include <sconce/sconce.hpp>

struct Factors : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& user, const torch::Tensor& film) {
    return (users(user) * films(film)).sum(1);
  }
  torch::nn::Embedding users = register_module("users", torch::nn::Embedding(50, 4));
  torch::nn::Embedding films = register_module("films", torch::nn::Embedding(40, 4));
};

int main() {
  sconce::tune_threads();
  torch::manual_seed(0);
  const auto ratings = torch::outer(torch::arange(-25, 25) / 10., torch::arange(-20, 20) / 10.);
  std::vector<std::vector<torch::Tensor>> train, test;
  for (const auto& pairs : torch::randperm(2000).split(100)) {
    const auto user = pairs.div(40, "floor"), film = pairs.remainder(40);
    (train.size() < 15 ? train : test).push_back({user, film, ratings.index({user, film})});
  }
  Factors model;
  sconce::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(/*lr=*/0.1));
  sconce::Trainer trainer({.max_epochs = 5, .num_gpus = 0, .loss = torch::nn::MSELoss()});
  for (const auto& epoch : trainer.fit(model, adam, {train, test}).epochs) {
    std::printf("epoch %d: loss %.6f, test loss %.6f\n", epoch.epoch, epoch.loss,
                epoch.at("test_loss"));
  }
}
