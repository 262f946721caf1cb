// Benchmarks a training step of a language model with a vocabulary of 10,000 on 8 sequences of
// `size` tokens. The model consists of an embedding and two LSTM layers with 512 units each.

#include <torch/torch.h>

#include <memory>

#include "sconce/optim/sgd.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

struct LanguageModel : torch::nn::Module {
  LanguageModel(int64_t symbols, int64_t features)
      : tokens(register_module("tokens", torch::nn::Embedding(symbols, features))),
        lstm(register_module(
            "lstm",
            torch::nn::LSTM(
                torch::nn::LSTMOptions(features, features).num_layers(2).batch_first(true)))),
        head(register_module("head", torch::nn::Linear(features, symbols))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return head(std::get<0>(lstm(tokens(x)))).flatten(0, 1);
  }

  torch::nn::Embedding tokens;
  torch::nn::LSTM lstm;
  torch::nn::Linear head;
};

template <Run run>
Workload lstm(int64_t size) {
  torch::manual_seed(0);
  const auto net = std::make_shared<LanguageModel>(10'000, 512);
  const auto text = torch::randint(10'000, {8, size + 1});
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  return training_steps<run>(
      optimizer, {text.slice(1, 0, size), text.slice(1, 1).flatten()}, [net](const Tensors& batch) {
        return torch::nn::functional::cross_entropy(net->forward(batch[0]), batch[1]);
      });
}

}  // namespace

Workloads recurrent() {
  return {{"lstm", lstm<Run::eager>}, {"lstm_captured", lstm<Run::captured>}};
}

}  // namespace bench
