// Runs training steps of two models: a single GPT block with 256 features and four heads on `size`
// sequences of 128 tokens, and a GPT-2 with two blocks on one sequence of `size` tokens.

#include <torch/torch.h>

#include <limits>
#include <memory>

#include "gpt_model.hpp"
#include "sconce/nn/transformer.hpp"
#include "sconce/optim/adam.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

template <Run run>
Workload block(int64_t size) {
  torch::manual_seed(0);
  const int64_t tokens = 128, features = 256;
  const sconce::nn::TransformerEncoderLayer net(
      sconce::nn::TransformerEncoderLayerOptions(features, 4)
          .dim_feedforward(4 * features)
          .dropout(0)
          .activation(torch::kGELU)
          .batch_first(true)
          .norm_first(true));
  const auto x = torch::randn({size, tokens, features});
  const auto mask = torch::full({tokens, tokens}, -std::numeric_limits<float>::infinity()).triu(1);
  const auto optimizer =
      std::make_shared<sconce::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(1e-3));
  return training_steps<run>(optimizer, {x}, [net = net.ptr(), mask](const Tensors& batch) {
    return net->forward(batch[0], {.src_mask = mask, .is_causal = true}).square().mean();
  });
}

template <Run run>
Workload gpt2(int64_t size) {
  torch::manual_seed(0);
  constexpr GPTOptions options{
      .texts = 1, .symbols = 50257, .features = 768, .heads = 12, .layers = 2, .tied = true};
  const auto net = std::make_shared<GPT>(options, size);
  const auto optimizer =
      std::make_shared<sconce::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(1e-3));
  const auto text = torch::randint(options.symbols, {options.texts, size + 1});
  return training_steps<run>(
      optimizer, {text.slice(1, 0, size), text.slice(1, 1).flatten()}, [net](const Tensors& batch) {
        return torch::nn::functional::cross_entropy(net->forward(batch[0]), batch[1]);
      });
}

}  // namespace

Workloads gpt() {
  return {{"block", block<Run::eager>},
          {"block_captured", block<Run::captured>},
          {"block_compiled", block<Run::compiled>},
          {"gpt2", gpt2<Run::eager>},
          {"gpt2_captured", gpt2<Run::captured>},
          {"gpt2_compiled", gpt2<Run::compiled>}};
}

}  // namespace bench
