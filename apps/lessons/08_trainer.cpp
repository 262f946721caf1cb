// The trainer: the loop of the d2l book, which moves the model and each batch to the GPU.
// Covers: T2.47a T2.47b T2.47c
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <vector>

struct Trainer;

struct Model : torch::nn::SequentialImpl {
  Trainer* trainer = nullptr;
};

// T2.47a
// note: the book patches the methods into a class that is there already, which C++ cannot. A
// member that a parameter also names ends in _.
struct Trainer {
  int max_epochs_;
  double gradient_clip_val_;
  std::vector<torch::Device> gpus = {};
  std::shared_ptr<Model> model_ = {};

  explicit Trainer(int max_epochs, int num_gpus = 0, double gradient_clip_val = 0)
      : max_epochs_(max_epochs), gradient_clip_val_(gradient_clip_val) {
    for (int i = 0; i < std::min(num_gpus, sconce::num_gpus()); ++i)
      gpus.push_back(sconce::gpu(i));
  }

  // T2.47b
  std::vector<torch::Tensor> prepare_batch(std::vector<torch::Tensor> batch) const {
    if (!gpus.empty())
      for (auto& a : batch) a = a.to(gpus[0]);
    return batch;
  }

  // T2.47c
  // note: the cell also sets model.board.xlim. A plain nn.Module has no board, and a compiler
  // says so: has no member named 'board'.
  void prepare_model(const std::shared_ptr<Model>& model) {
    model->trainer = this;
    if (!gpus.empty()) model->to(gpus[0]);
    model_ = model;
  }
};

void beyond(const Trainer& trainer, const torch::Tensor& X, const torch::Tensor& y);

int main() {
  torch::manual_seed(0);
  auto X = torch::randn({96, 2});
  auto y = (X.select(1, 0) > X.select(1, 1)).to(torch::kLong);
  auto model = std::make_shared<Model>();
  model->push_back(torch::nn::Linear(2, 8));
  model->push_back(torch::nn::ReLU());
  model->push_back(torch::nn::Linear(8, 2));

  Trainer trainer(5, /*num_gpus=*/10, /*gradient_clip_val=*/1);
  trainer.prepare_model(model);
  beyond(trainer, X, y);
}

// Beyond the cells: how many of 10 GPUs were taken, and a fit by sconce::Trainer.
void beyond(const Trainer& trainer, const torch::Tensor& X, const torch::Tensor& y) {
  std::cout << "Beyond the cells:\nGPUs of 10: " << trainer.gpus.size() << '\n';
  std::cout << trainer.model_->parameters()[0].device() << ' '
            << trainer.prepare_batch({X, y})[0].device() << '\n';
  torch::optim::SGD sgd(trainer.model_->parameters(), 0.5);
  sconce::Trainer own({.max_epochs = trainer.max_epochs_,
                       .num_gpus = std::min(1, sconce::num_gpus()),
                       .gradient_clip_val = trainer.gradient_clip_val_});
  const auto result =
      own.fit(*trainer.model_, sgd, {sconce::data::Batches({X, y}, {.batch_size = 32})});
  for (const auto& epoch : result.epochs)
    std::printf("epoch %d: loss %.4f\n", epoch.epoch, epoch.loss);
}
