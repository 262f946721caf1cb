// Trains a perceptron on 28x28 images until it reaches a given test accuracy, as a complete
// training run.

#include <torch/torch.h>

#include <filesystem>

#include "sconce/data/batches.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/vision/idx.hpp"
#include "workload.hpp"

namespace bench {

namespace {

namespace fs = std::filesystem;

sconce::data::Dataset read_pictures(const fs::path& folder, const std::string& part) {
  const std::string end = fs::exists(folder / "train-images-idx3-ubyte.gz") ? ".gz" : "";
  auto [data, target] = sconce::vision::read_idx(folder / (part + "-images-idx3-ubyte" + end),
                                                 folder / (part + "-labels-idx1-ubyte" + end));
  return {data.to(torch::kFloat).div_(data.max()), target.to(torch::kLong)};
}

// Trains on Fashion-MNIST, from Debian's dataset-fashion-mnist package, until the accuracy reaches
// 0.87. The check value is the number of epochs, with a maximum of 20.
Workload accuracy(int64_t) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  torch::manual_seed(0);
  const auto train = read_pictures(folder, "train"), test = read_pictures(folder, "t10k");
  torch::nn::Sequential net;  // constructor arguments may be evaluated in any order
  net->push_back(torch::nn::Flatten());
  net->push_back(torch::nn::Linear(train.data[0].numel(), 256));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::Linear(256, 10));
  sconce::optim::Adam optimizer(net->parameters(), 1e-3);
  sconce::data::Batches batches(train, {.batch_size = 256, .shuffle = true});
  const sconce::data::Batches test_batches(test, {.batch_size = 1000});
  sconce::Trainer trainer({.num_gpus = 0});
  batches.set_epoch(1);  // the first seed of race.py
  for (int epoch = 1; epoch <= 20; ++epoch) {
    trainer.fit_epoch(net, optimizer, batches);
    const auto values = trainer.evaluate(net, test_batches);
    if (values.at("acc") >= 0.87) return {[] {}, {static_cast<double>(epoch)}};
  }
  TORCH_CHECK(false, "race.accuracy: expected an accuracy of 0.87 within 20 epochs");
}

}  // namespace

Workloads race() {
  return {{"accuracy", accuracy}};
}

}  // namespace bench
