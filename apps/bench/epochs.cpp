// Benchmarks epochs over in-memory synthetic 28x28 images, in shuffled batches of 256.

#include <torch/torch.h>

#include <memory>

#include "sconce/data/batches.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

using torch::nn::Conv2d, torch::nn::Conv2dOptions, torch::nn::Linear;

// Each layer with parameters is created in a separate statement. C++ does not specify the order in
// which arguments are evaluated, and that order determines which random numbers a layer receives.
torch::nn::Sequential mlp() {
  torch::nn::Sequential net;
  net->push_back(torch::nn::Flatten());
  net->push_back(Linear(784, 256));
  net->push_back(torch::nn::ReLU());
  net->push_back(Linear(256, 10));
  return net;
}

torch::nn::Sequential lenet() {
  torch::nn::Sequential net;
  net->push_back(Conv2d(Conv2dOptions(1, 6, 5).padding(2)));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::MaxPool2d(2));
  net->push_back(Conv2d(Conv2dOptions(6, 16, 5)));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::MaxPool2d(2));
  net->push_back(torch::nn::Flatten());
  net->push_back(Linear(400, 120));
  net->push_back(torch::nn::ReLU());
  net->push_back(Linear(120, 84));
  net->push_back(torch::nn::ReLU());
  net->push_back(Linear(84, 10));
  return net;
}

// Checks the loss of the first unshuffled batch, before any training step.
template <Run run>
Workload epoch(torch::nn::Sequential net, int64_t pictures) {
  const auto data = torch::randn({pictures, 1, 28, 28});
  const auto target = torch::arange(pictures).remainder(10);
  const auto loss = torch::nn::functional::cross_entropy(net->forward(data.slice(0, 0, 256)),
                                                         target.slice(0, 0, 256));
  auto optimizer =
      std::make_shared<sconce::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.01));
  auto batches = std::make_shared<sconce::data::Batches>(
      sconce::data::Dataset{data, target},
      sconce::data::BatchesOptions{.batch_size = 256, .shuffle = true});
  const std::vector<double> check = {loss.item<double>()};
  auto trainer = std::make_shared<sconce::Trainer>(sconce::TrainerOptions{
      .num_gpus = 0, .graph = run == Run::captured, .compiler = compiler<run>()});
  return {[=]() mutable { trainer->fit_epoch(net, *optimizer, *batches); }, check};
}

template <Run run>
Workload mlp_epoch(int64_t pictures) {
  torch::manual_seed(0);
  return epoch<run>(mlp(), pictures);
}

template <Run run>
Workload lenet_epoch(int64_t pictures) {
  torch::manual_seed(0);
  return epoch<run>(lenet(), pictures);
}

}  // namespace

Workloads epochs() {
  return {{"mlp", mlp_epoch<Run::eager>},
          {"mlp_captured", mlp_epoch<Run::captured>},
          {"mlp_compiled", mlp_epoch<Run::compiled>},
          {"lenet", lenet_epoch<Run::eager>},
          {"lenet_captured", lenet_epoch<Run::captured>},
          {"lenet_compiled", lenet_epoch<Run::compiled>}};
}

}  // namespace bench
