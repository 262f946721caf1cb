// A step of one block of a GPT, of 256 features and four heads, on `size` sequences of 128 tokens.

#include <torch/torch.h>

#include <limits>
#include <memory>

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

}  // namespace

Workloads gpt() {
  return {{"block", block<Run::eager>},
          {"block_captured", block<Run::captured>},
          {"block_compiled", block<Run::compiled>}};
}

}  // namespace bench
