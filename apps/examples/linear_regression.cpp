// Fits a linear regression to measurements from diabetes patients, with a model that computes its
// own loss.
#include <torch/torch.h>
#include <cstdio>
#include <sconce/sconce.hpp>

struct LinearRegression : torch::nn::Module {
  torch::Tensor training_step(const sconce::data::Dataset& batch) {
    return (net(batch.data) - batch.target).square().mean() / 2;
  }
  torch::nn::Linear net = register_module("net", torch::nn::Linear(10, 1));
};

int main() {
  sconce::tune_threads();
  const auto patients = sconce::io::read_csv(SCONCE_DIABETES_CSV, {.target = "progression"});
  auto table = torch::cat({patients.data, patients.target}, 1);
  table = (table - table.mean({0})) / table.std({0}, /*unbiased=*/true);
  const auto X = table.slice(1, 0, 10), y = table.slice(1, 10);
  sconce::data::Batches batches({X, y}, {.batch_size = 32, .shuffle = true});
  torch::manual_seed(0);
  LinearRegression model;
  torch::optim::SGD sgd(model.parameters(), /*lr=*/0.03);
  sconce::Trainer trainer({.max_epochs = 5, .num_gpus = 0});
  for (const auto& epoch : trainer.fit(model, sgd, {batches}).epochs) {
    std::printf("epoch %d: loss %.6f\n", epoch.epoch, epoch.loss);
  }
}
