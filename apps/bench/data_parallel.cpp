// Benchmarks a perceptron training step on `size` rows, both with two CPU replicas and with a
// single module. The replicas return either their outputs or, after their own backward passes,
// their losses. Python's DataParallel supports only GPUs.

#include "sconce/distributed/data_parallel.hpp"

#include <torch/torch.h>

#include <memory>

#include "sconce/optim/sgd.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

torch::nn::Sequential wide_mlp() {
  torch::manual_seed(0);
  torch::nn::Sequential model;  // constructor arguments may be evaluated in any order
  model->push_back(torch::nn::Linear(256, 1024));
  model->push_back(torch::nn::ReLU());
  model->push_back(torch::nn::Linear(1024, 10));
  return model;
}

struct Training {
  std::shared_ptr<sconce::optim::SGD> optimizer;
  Tensors batch;
};

Training training_of(const torch::nn::Sequential& model, int64_t size) {
  return {std::make_shared<sconce::optim::SGD>(model->parameters(), 0.01),
          {torch::randn({size, 256}), torch::arange(size).remainder(10)}};
}

auto two_replicas(const torch::nn::Sequential& model) {
  return std::make_shared<sconce::nn::DataParallel<torch::nn::SequentialImpl>>(
      model, sconce::nn::DataParallelOptions{.device_ids = {torch::kCPU, torch::kCPU}});
}

template <class Forward>
Workload replica_steps(const torch::nn::Sequential& model, int64_t size, const Forward& forward) {
  const auto training = training_of(model, size);
  return training_steps(training.optimizer, training.batch, [=](const Tensors& tensors) {
    return F::cross_entropy(forward(tensors[0]), tensors[1]);
  });
}

Workload replicas(int64_t size) {
  const auto model = wide_mlp();
  return replica_steps(model, size,
                       [pair = two_replicas(model)](const Tensor& x) { return pair->forward(x); });
}

// Returns the loss of a chunk, divided by the number of chunks.
Tensor backward_of_chunk(torch::nn::SequentialImpl& replica, const Tensor& x,
                         const Tensor& target) {
  const Tensor loss = F::cross_entropy(replica.forward(x), target) / 2;
  loss.backward();
  return loss.detach().view(1);
}

Workload losses_in_replicas(int64_t size) {
  const auto model = wide_mlp();
  const auto training = training_of(model, size);
  const auto step = [optimizer = training.optimizer,
                     pair = two_replicas(model)](const Tensors& batch) {
    optimizer->zero_grad();
    Tensor losses = pair->call(backward_of_chunk, batch[0], batch[1]);
    optimizer->step();
    return losses.sum();
  };
  return calls_of(step, training.batch);
}

Workload no_replicas(int64_t size) {
  const auto model = wide_mlp();
  return replica_steps(model, size,
                       [net = model.ptr()](const Tensor& x) { return net->forward(x); });
}

}  // namespace

Workloads data_parallel() {
  return {{"step", replicas}, {"losses", losses_in_replicas}, {"bare", no_replicas}};
}

}  // namespace bench
