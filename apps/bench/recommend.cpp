// Benchmarks a recommender training step on 512 pairs. The recommender consists of two towers over
// embeddings of `size` users and `size` items, with sparse gradients.

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

struct Tower : torch::nn::Module {
  explicit Tower(int64_t size)
      : rows(register_module(
            "rows", torch::nn::Embedding(torch::nn::EmbeddingOptions(size, 32).sparse(true)))),
        hidden(register_module("hidden", torch::nn::Linear(32, 64))),
        output(register_module("output", torch::nn::Linear(64, 32))) {}

  torch::Tensor forward(const torch::Tensor& ids) { return output(torch::relu(hidden(rows(ids)))); }

  torch::nn::Embedding rows;
  torch::nn::Linear hidden, output;
};

Workload two_towers(int64_t size) {
  torch::manual_seed(0);
  const auto users = std::make_shared<Tower>(size), items = std::make_shared<Tower>(size);
  std::vector<torch::Tensor> weights;
  for (const auto& tower : {users, items}) {
    for (const auto& layer : {tower->hidden, tower->output}) {
      for (const auto& weight : layer->parameters()) weights.push_back(weight);
    }
  }
  const auto sparse = std::make_shared<sconce::optim::SGD>(
      std::vector{users->rows->weight, items->rows->weight}, 0.1);
  const auto dense =
      std::make_shared<sconce::optim::Adam>(weights, torch::optim::AdamOptions(1e-3));
  const auto user_ids = torch::randint(size, {512}), item_ids = torch::randint(size, {512});
  const auto liked = torch::arange(512).remainder(2);
  const auto step = [=](const Tensors& batch) {
    sparse->zero_grad();
    dense->zero_grad();
    const auto scores = (users->forward(batch[0]) * items->forward(batch[1])).sum(1);
    const auto loss = torch::binary_cross_entropy_with_logits(scores, batch[2].to(torch::kFloat));
    loss.backward();
    sparse->step();
    dense->step();
    return loss;
  };
  return calls_of(step, {user_ids, item_ids, liked});
}

}  // namespace

Workloads recommend() {
  return {{"two_towers", two_towers}};
}

}  // namespace bench
