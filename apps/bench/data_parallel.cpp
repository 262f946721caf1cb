// Benchmarks a perceptron training step on `size` rows, both with two CPU replicas and with a
// single module. Python's DataParallel supports only GPUs.

#include "sconce/distributed/data_parallel.hpp"

#include <torch/torch.h>

#include <memory>

#include "sconce/optim/sgd.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

torch::nn::Sequential wide_mlp() {
  torch::manual_seed(0);
  torch::nn::Sequential model;  // constructor arguments may be evaluated in any order
  model->push_back(torch::nn::Linear(256, 1024));
  model->push_back(torch::nn::ReLU());
  model->push_back(torch::nn::Linear(1024, 10));
  return model;
}

template <class Forward>
Workload replica_steps(const torch::nn::Sequential& model, int64_t size, const Forward& forward) {
  const auto optimizer = std::make_shared<sconce::optim::SGD>(model->parameters(), 0.01);
  const auto x = torch::randn({size, 256});
  const auto target = torch::arange(size).remainder(10);
  return training_steps(optimizer, {x, target}, [=](const Tensors& batch) {
    return torch::nn::functional::cross_entropy(forward(batch[0]), batch[1]);
  });
}

Workload replicas(int64_t size) {
  const auto model = wide_mlp();
  const auto model_of_two = std::make_shared<sconce::nn::DataParallel<torch::nn::SequentialImpl>>(
      model, sconce::nn::DataParallelOptions{.device_ids = {torch::kCPU, torch::kCPU}});
  return replica_steps(model, size,
                       [=](const torch::Tensor& x) { return model_of_two->forward(x); });
}

Workload no_replicas(int64_t size) {
  const auto model = wide_mlp();
  return replica_steps(model, size,
                       [net = model.ptr()](const torch::Tensor& x) { return net->forward(x); });
}

}  // namespace

Workloads data_parallel() {
  return {{"step", replicas}, {"bare", no_replicas}};
}

}  // namespace bench
