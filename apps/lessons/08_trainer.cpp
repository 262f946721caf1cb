// The trainer: the loop of the d2l book, which moves the model and each batch to the GPU.
// Covers: T2.47a T2.47b T2.47c
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

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

  // note: the book caps num_gpus silently at what is there, and uses the first GPU only; sconce
  // warns of a GPU that is missing, and refuses more than one until it uses more than one.
  sconce::Trainer trainer(
      {.max_epochs = 5, .num_gpus = std::min(1, sconce::num_gpus()), .gradient_clip_val = 1});

  // note: in the book these two are patched into a class that is there already, which C++ cannot.
  // They are plain methods here; `model.board`, which a plain nn.Module has not, is left out.
  auto batch = trainer.prepare_batch({X, y});
  std::cout << batch.data.device() << ' ' << batch.target.device() << '\n';
  trainer.prepare_model(*net);
  std::cout << net->parameters()[0].device() << '\n';

  // note: gradient_clip_val is unused in these cells; here it clips. The optimizer and the data are
  // arguments of fit, and the rows keep their order. The loss is the cross entropy.
  torch::optim::SGD sgd(net->parameters(), 0.5);
  auto result = trainer.fit(net, sgd, {sconce::data::Batches({X, y}, {.batch_size = 32})});
  for (const auto& epoch : result.epochs) {
    std::printf("epoch %d: loss %.4f\n", epoch.epoch, epoch.loss);
  }
}
