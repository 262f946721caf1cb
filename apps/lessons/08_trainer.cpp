// The trainer: the loop of the d2l book, which moves the model and each batch to the GPU.
// Covers: T2.47a T2.47b T2.47c
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <vector>

// note: in the book the methods are patched into a class that is there already, which C++ cannot.
struct Trainer {
  int max_epochs_;
  double
      gradient_clip_val_;  // note: the book's three methods do not use it; sconce clips.
  std::vector<torch::Device> gpus = {};

  // T2.47a
  // note: the book caps num_gpus silently at what is there, and uses the first GPU only.
  explicit Trainer(int max_epochs, int num_gpus = 0, double gradient_clip_val = 0)
      : max_epochs_(max_epochs), gradient_clip_val_(gradient_clip_val) {
    const int count = std::min(num_gpus, sconce::num_gpus());
    for (int i = 0; i < count; ++i) gpus.push_back(sconce::gpu(i));
  }

  // T2.47b
  std::vector<torch::Tensor> prepare_batch(std::vector<torch::Tensor> batch) const {
    if (!gpus.empty())
      for (auto& a : batch) a = a.to(gpus[0]);
    return batch;
  }

  // T2.47c
  // note: the cell also sets model.board.xlim. A plain nn.Module has no board, and C++ refuses:
  // error: 'class torch::nn::Module' has no member named 'board'
  void prepare_model(torch::nn::Module& model) const {
    if (!gpus.empty()) model.to(gpus[0]);
  }
};

template <class M>
constexpr bool has_board = requires(M model) { model.board; };

int main() {
  torch::manual_seed(0);
  auto X = torch::randn({96, 2});
  auto y = (X.select(1, 0) > X.select(1, 1)).to(torch::kLong);

  // note: Sequential(Linear(2, 8), ReLU(), Linear(8, 2)) is the same net with other numbers: C++
  // may make the arguments of a call in any order, and each layer draws when it is made.
  torch::nn::Sequential net;
  net->push_back(torch::nn::Linear(2, 8));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::Linear(8, 2));

  const Trainer trainer(5, /*num_gpus=*/10, /*gradient_clip_val=*/1);
  std::cout << "GPUs of 10: " << trainer.gpus.size() << '\n';
  const auto batch = trainer.prepare_batch({X, y});
  std::cout << batch[0].device() << ' ' << batch[1].device() << '\n';
  std::cout << "the model has a board: " << sconce::repr(has_board<decltype(*net)>)
            << '\n';
  trainer.prepare_model(*net);
  std::cout << net->parameters()[0].device() << '\n';

  // note: sconce's Trainer has both as plain methods, warns of a GPU that is missing, refuses more
  // than one until it uses more than one. The optimizer and the data are arguments of fit, the
  // rows keep their order, the loss is the cross entropy.
  std::cout << "Beyond the cells:\n";
  sconce::Trainer own({.max_epochs = trainer.max_epochs_,
                       .num_gpus = std::min(1, sconce::num_gpus()),
                       .gradient_clip_val = trainer.gradient_clip_val_});
  const auto own_batch = own.prepare_batch({X, y});
  own.prepare_model(*net);
  std::cout << own_batch.data.device() << ' ' << net->parameters()[0].device() << '\n';
  torch::optim::SGD sgd(net->parameters(), 0.5);
  const auto result =
      own.fit(net, sgd, {sconce::data::Batches({X, y}, {.batch_size = 32})});
  for (const auto& epoch : result.epochs) {
    std::printf("epoch %d: loss %.4f\n", epoch.epoch, epoch.loss);
  }
  // note: the book's board is sconce's TrainingCurve, which fit takes as a callback and which
  // draws an SVG after each epoch. Its chart is this one; board.save("board.svg") writes it.
  const auto board = sconce::training_chart({.epochs = result.epochs});
  const auto& line = board.panels[0].series[0];
  std::printf("board: %s loss of %zu points, %.4f to %.4f\n", line.name.c_str(),
              line.x.size(), line.y.front(), line.y.back());
}
