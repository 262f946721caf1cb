// Implements the d2l book's trainer, which moves the model and each minibatch to a GPU.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <vector>

namespace nn = torch::nn;

struct Trainer;

struct Board {
  std::vector<int> xlim;
};

struct Model : nn::SequentialImpl {
  Board board;
  Trainer* trainer = nullptr;
};

// T2.47a
struct Trainer {
  int max_epochs;
  int num_gpus = 0;
  double gradient_clip_val = 0;

  std::vector<torch::Device> gpus = [this] {
    std::vector<torch::Device> devices;
    for (int i = 0; i < std::min(num_gpus, sconce::num_gpus()); ++i)
      devices.push_back(sconce::gpu(i));
    return devices;
  }();

  std::shared_ptr<Model> model_ = nullptr;

  // T2.47b
  std::vector<torch::Tensor> prepare_batch(std::vector<torch::Tensor> batch) {
    if (!gpus.empty())
      for (auto& a : batch) a = a.to(gpus[0]);
    return batch;
  }

  // T2.47c
  void prepare_model(const std::shared_ptr<Model>& model) {
    model->trainer = this;
    model->board.xlim = {0, max_epochs};
    if (!gpus.empty()) model->to(gpus[0]);
    model_ = model;
  }
};

int main() {
  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  torch::manual_seed(0);
  auto X = torch::randn({96, 2});
  auto y = (X.select(1, 0) > X.select(1, 1)).to(torch::kLong);
  auto model = std::make_shared<Model>();
  model->push_back(nn::Linear(2, 2));

  Trainer trainer{.max_epochs = 5, .num_gpus = 10, .gradient_clip_val = 1};
  trainer.prepare_model(model);
  std::cout << "GPUs found, of 10: " << trainer.gpus.size() << '\n';
  std::cout << "end of the board's x axis: " << model->board.xlim[1] << '\n';
  std::cout << "model on " << model->parameters()[0].device() << ", batch on "
            << trainer.prepare_batch({X, y})[0].device() << '\n';

  torch::optim::SGD sgd(model->parameters(), 0.5);
  auto batches = sconce::data::Batches({X, y}, {.batch_size = 32});
  sconce::Trainer own({.max_epochs = 5,
                       .num_gpus = std::min(1, sconce::num_gpus()),
                       .gradient_clip_val = 1});
  for (auto& epoch : own.fit(*model, sgd, {batches}).epochs)
    std::printf("epoch %d: loss %.4f\n", epoch.epoch, epoch.loss);
}
