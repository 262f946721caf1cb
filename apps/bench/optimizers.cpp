// Benchmarks optimizer steps and gradient clipping without a model.

#include <torch/torch.h>

#include <memory>

#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/adam.hpp"
#include "workload.hpp"

namespace bench {

namespace {

// Returns `count` parameters with 64 elements each, and their gradients.
std::vector<torch::Tensor> small_parameters(int64_t count) {
  torch::manual_seed(0);
  std::vector<torch::Tensor> parameters;
  for (int64_t i = 0; i < count; ++i) {
    parameters.push_back(torch::randn(64).requires_grad_());
    parameters.back().mutable_grad() = torch::randn(64);
  }
  return parameters;
}

template <class Optimizer>
Workload step_of(std::vector<torch::Tensor> parameters) {
  auto optimizer = std::make_shared<Optimizer>(parameters, torch::optim::AdamWOptions(1e-3));
  optimizer->step();
  return {[optimizer] { optimizer->step(); }, {parameters.front().sum().template item<double>()}};
}

Workload adamw_small(int64_t count) {
  return step_of<sconce::optim::AdamW>(small_parameters(count));
}

Workload adamw_small_libtorch(int64_t count) {
  return step_of<torch::optim::AdamW>(small_parameters(count));
}

// One parameter with `size` elements.
Workload adamw_large(int64_t size) {
  torch::manual_seed(0);
  const auto parameter = torch::randn(size).requires_grad_();
  parameter.mutable_grad() = torch::randn(size);
  return step_of<sconce::optim::AdamW>({parameter});
}

Workload clip_small(int64_t count) {
  const auto parameters = small_parameters(count);
  const auto clip = [parameters] { return sconce::nn::clip_grad_norm_(parameters, 1.0); };
  return {clip, {clip().item<double>()}};
}

}  // namespace

Workloads optimizers() {
  return {{"adamw_small", adamw_small},
          {"adamw_small_libtorch", adamw_small_libtorch},
          {"adamw_large", adamw_large},
          {"clip_small", clip_small}};
}

}  // namespace bench
