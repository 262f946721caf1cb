// Benchmarks the training steps of small models, where the overhead between kernels matters.

#include <torch/torch.h>

#include <memory>

#include "sconce/amp/autocast.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

namespace F = torch::nn::functional;

// SimpleNN, the tutorial's network.
struct SimpleNN : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};

template <class Optimizer, Run run = Run::eager, class Options>
Workload simple_nn(const Options& options, int64_t rows) {
  torch::manual_seed(0);
  auto model = std::make_shared<SimpleNN>();
  const auto inputs = torch::randn({rows, 3}), labels = torch::arange(rows).remainder(2);
  const auto optimizer = std::make_shared<Optimizer>(model->parameters(), options);
  return training_steps<run>(optimizer, {inputs, labels}, [=](const Tensors& batch) {
    return F::cross_entropy(model->forward(batch[0]), batch[1]);
  });
}

template <Run run>
Workload sgd(int64_t rows) {
  return simple_nn<sconce::optim::SGD, run>(torch::optim::SGDOptions(0.01), rows);
}

Workload sgd_libtorch(int64_t rows) {
  return simple_nn<torch::optim::SGD>(torch::optim::SGDOptions(0.01), rows);
}

template <Run run>
Workload adam(int64_t rows) {
  return simple_nn<sconce::optim::Adam, run>(torch::optim::AdamOptions(0.01), rows);
}

Workload adam_libtorch(int64_t rows) {
  return simple_nn<torch::optim::Adam>(torch::optim::AdamOptions(0.01), rows);
}

// Runs a bfloat16 training step of a perceptron with `size` units, using autocast, a gradient
// scaler, and gradient clipping.
template <Run run>
Workload amp(int64_t size) {
  torch::manual_seed(0);
  torch::nn::Sequential model;  // constructor arguments may be evaluated in any order
  model->push_back(torch::nn::Linear(size, size));
  model->push_back(torch::nn::ReLU());
  model->push_back(torch::nn::Linear(size, 10));
  const auto inputs = torch::randn({32, size}), labels = torch::arange(32).remainder(10);
  auto optimizer =
      std::make_shared<sconce::optim::AdamW>(model->parameters(), torch::optim::AdamWOptions(1e-3));
  auto scaler = std::make_shared<sconce::amp::GradScaler>(
      sconce::amp::GradScalerOptions{.device = torch::kCPU});
  const auto step = [=, net = model.ptr()](const Tensors& batch) {
    optimizer->zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(torch::kCPU, {.dtype = torch::kBFloat16});
      loss = F::cross_entropy(net->forward(batch[0]), batch[1]);
    }
    scaler->scale(loss).backward();
    scaler->unscale_(*optimizer);
    sconce::nn::clip_grad_norm_(net->parameters(), 1.0);
    scaler->step(*optimizer);
    scaler->update();
    return loss;
  };
  return calls_of<run>(step, {inputs, labels});
}

// `size` consecutive linear layers with 64 units each.
template <Run run>
Workload layers(int64_t size) {
  torch::manual_seed(0);
  torch::nn::Sequential net;
  for (int64_t i = 0; i < size; ++i) net->push_back(torch::nn::Linear(64, 64));
  const auto x = torch::randn({16, 64});
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  return training_steps<run>(optimizer, {x}, [net = net.ptr()](const Tensors& batch) {
    return net->forward(batch[0]).square().mean();
  });
}

// Trains the network from docs/ship_a_program.md on one batch of the table from that page.
template <Run run>
Workload table(int64_t rows) {
  torch::manual_seed(0);
  torch::nn::Sequential net;
  net->push_back(torch::nn::Linear(5, 32));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::Linear(32, 1));
  const auto X = torch::randn({rows, 5}), y = torch::randn({rows, 1});
  const auto optimizer =
      std::make_shared<sconce::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(0.01));
  return training_steps<run>(optimizer, {X, y}, [net = net.ptr()](const Tensors& batch) {
    return torch::mse_loss(net->forward(batch[0]), batch[1]);
  });
}

}  // namespace

Workloads steps() {
  return {{"sgd", sgd<Run::eager>},
          {"sgd_captured", sgd<Run::captured>},
          {"sgd_compiled", sgd<Run::compiled>},
          {"sgd_libtorch", sgd_libtorch},
          {"adam", adam<Run::eager>},
          {"adam_captured", adam<Run::captured>},
          {"adam_compiled", adam<Run::compiled>},
          {"adam_libtorch", adam_libtorch},
          {"amp", amp<Run::eager>},
          {"amp_captured", amp<Run::captured>},
          {"amp_compiled", amp<Run::compiled>},
          {"layers", layers<Run::eager>},
          {"layers_captured", layers<Run::captured>},
          {"layers_compiled", layers<Run::compiled>},
          {"table", table<Run::eager>},
          {"table_captured", table<Run::captured>},
          {"table_compiled", table<Run::compiled>}};
}

}  // namespace bench
