#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <limits>
#include <string>
#include <vector>

#include "sconce/nn/layer_norm.hpp"
#include "sconce/nn/transformer.hpp"

namespace bench {

struct GPTOptions {
  int64_t texts, symbols, features, heads, layers;
  bool tied = false;  // whether the last layer shares the first one's weights
};

/// A GPT for texts of `context` tokens, as in gpt.py.
struct GPT : torch::nn::Module {
  GPT(const GPTOptions& options, int64_t context) {
    const auto [texts, symbols, features, heads, layers, tied] = options;
    tokens = register_module("tokens", torch::nn::Embedding(symbols, features));
    places = register_module("places", torch::nn::Embedding(context, features));
    const auto block = sconce::nn::TransformerEncoderLayerOptions(features, heads)
                           .dim_feedforward(4 * features)
                           .dropout(0)
                           .activation(torch::kGELU)
                           .batch_first(true)
                           .norm_first(true);
    for (int64_t i = 0; i < layers; ++i) {
      blocks.push_back(
          register_module("block" + std::to_string(i), sconce::nn::TransformerEncoderLayer(block)));
    }
    norm = register_module("norm", sconce::nn::LayerNorm(features));
    if (tied) {
      const torch::NoGradGuard no_grad;
      tokens->weight.mul_(0.02);
    } else {
      head = register_module("head", torch::nn::Linear(features, symbols));
    }
    mask = register_buffer(
        "mask", torch::full({context, context}, -std::numeric_limits<float>::infinity()).triu(1));
  }

  torch::Tensor forward(const torch::Tensor& x) {  // (N, context) to (N * context, symbols)
    auto h = tokens(x) + places->weight;
    for (auto& block : blocks) h = block->forward(h, {.src_mask = mask, .is_causal = true});
    h = norm(h).flatten(0, 1);
    return head ? head(h) : torch::linear(h, tokens->weight);
  }

  torch::nn::Embedding tokens = nullptr, places = nullptr;
  std::vector<sconce::nn::TransformerEncoderLayer> blocks = {};
  sconce::nn::LayerNorm norm = nullptr;
  torch::nn::Linear head = nullptr;
  torch::Tensor mask = {};
};

}  // namespace bench
