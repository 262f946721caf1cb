// Training steps of small models, in which the overhead between kernels matters.

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

// The tutorial's SimpleNN.
struct SimpleNN : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(3, 10));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(10, 2));
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};

template <class Optimizer, class Options>
Workload simple_nn(const Options& options, int64_t rows) {
  torch::manual_seed(0);
  auto model = std::make_shared<SimpleNN>();
  const auto inputs = torch::randn({rows, 3}), labels = torch::arange(rows).remainder(2);
  const auto optimizer = std::make_shared<Optimizer>(model->parameters(), options);
  return training_steps(optimizer,
                        [=] { return F::cross_entropy(model->forward(inputs), labels); });
}

Workload sgd(int64_t rows) {
  return simple_nn<sconce::optim::SGD>(torch::optim::SGDOptions(0.01), rows);
}

Workload sgd_libtorch(int64_t rows) {
  return simple_nn<torch::optim::SGD>(torch::optim::SGDOptions(0.01), rows);
}

Workload adam(int64_t rows) {
  return simple_nn<sconce::optim::Adam>(torch::optim::AdamOptions(0.01), rows);
}

Workload adam_libtorch(int64_t rows) {
  return simple_nn<torch::optim::Adam>(torch::optim::AdamOptions(0.01), rows);
}

// A bfloat16 step of a perceptron of `size` units with autocast, a scaler and clipping.
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
  auto step = [=]() mutable {
    optimizer->zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(torch::kCPU, {.dtype = torch::kBFloat16});
      loss = F::cross_entropy(model->forward(inputs), labels);
    }
    scaler->scale(loss).backward();
    scaler->unscale_(*optimizer);
    sconce::nn::clip_grad_norm_(model->parameters(), 1.0);
    scaler->step(*optimizer);
    scaler->update();
    return loss;
  };
  for (int i = 0; i < 2; ++i) step();
  return {step, {step().item<double>()}};
}

}  // namespace

Workloads steps() {
  return {{"sgd", sgd},
          {"sgd_libtorch", sgd_libtorch},
          {"adam", adam},
          {"adam_libtorch", adam_libtorch},
          {"amp", amp}};
}

}  // namespace bench
