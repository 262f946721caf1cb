#pragma once

// Defines the networks that the tests export, each with example inputs.

#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/nn/layer_norm.hpp"
#include "sconce/nn/transformer.hpp"
#include "sconce/program/program.hpp"
#include "sconce/program/record.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "sconce/vision/models/vision_transformer.hpp"

namespace sconce::test {

using program::Tensors;

/// A network, a function that runs it, and example inputs with this many rows.
struct Network {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  program::Function forward;
  std::function<StateDict(int64_t rows)> example;
  std::vector<program::DynamicDim> dynamic = {};  // besides the first dimensions

  /// Returns options that make the first dimension of each input and the dimensions in `dynamic`
  /// dynamic.
  program::RecordOptions options() const {
    program::RecordOptions options{.dynamic_shapes = dynamic, .module = module};
    for (const auto& item : example(2)) options.dynamic_shapes.push_back({.input = item.key()});
    return options;
  }
};

inline StateDict pictures(int64_t rows, int64_t size) {
  return {{"x", torch::randn({rows, 3, size, size})}};
}

/// Returns a network from a module holder whose `forward` accepts one input.
template <class Holder>
Network one_input(const std::string& name, Holder net, std::function<StateDict(int64_t)> example) {
  return {name, net.ptr(),
          [net](const Tensors& in) mutable { return Tensors{net->forward(in[0])}; },
          std::move(example)};
}

struct GptImpl : torch::nn::Module {
  GptImpl() {
    const auto block = nn::TransformerEncoderLayerOptions(32, 4)
                           .dim_feedforward(64)
                           .activation(torch::kGELU)
                           .batch_first(true)
                           .norm_first(true);
    for (int i = 0; i < 2; ++i) blocks->push_back(nn::TransformerEncoderLayer(block));
    register_module("tokens", tokens);
    register_module("places", places);
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("head", head);
  }
  torch::Tensor forward(const torch::Tensor& x) {  // (N, L) to (N, 40, L)
    const auto mask = torch::full({x.size(1), x.size(1)}, -INFINITY, x.device()).triu(1);
    auto h = tokens(x) + places(torch::arange(x.size(1), x.device()));
    for (const auto& block : *blocks) {
      h = block->as<nn::TransformerEncoderLayer>()->forward(h,
                                                            {.src_mask = mask, .is_causal = true});
    }
    return head(norm(h).flatten(0, 1)).unflatten(0, x.sizes()).transpose(1, 2);
  }

  torch::nn::Embedding tokens{40, 32};
  torch::nn::Embedding places{24, 32};
  torch::nn::ModuleList blocks;
  nn::LayerNorm norm{nn::LayerNormOptions(32)};
  torch::nn::Linear head{32, 40};
};
TORCH_MODULE(Gpt);

inline StateDict tokens(int64_t rows) {
  return {{"tokens", torch::randint(40, {rows, 12})}};
}

struct TextClassifierImpl : torch::nn::Module {
  TextClassifierImpl() {
    register_module("words", words);
    const auto layer = nn::TransformerEncoderLayer(
        nn::TransformerEncoderLayerOptions(32, 4).dim_feedforward(64).batch_first(true));
    encoder = register_module("encoder", nn::TransformerEncoder(layer, 2));
    register_module("out", out);
  }
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& padding) {
    const auto h = encoder->forward(words(tokens), {.src_key_padding_mask = padding});
    const auto kept = ~padding.unsqueeze(2);
    return out((h * kept).sum(1) / kept.sum(1));
  }

  torch::nn::Embedding words{40, 32};
  nn::TransformerEncoder encoder = nullptr;
  torch::nn::Linear out{32, 2};
};
TORCH_MODULE(TextClassifier);

inline Network text_classifier() {
  TextClassifier net;
  return {"text_classifier", net.ptr(),
          [net](const Tensors& in) mutable { return Tensors{net->forward(in[0], in[1])}; },
          [](int64_t rows) {
            const auto length = torch::randint(4, 13, {rows, 1});
            return StateDict{{"tokens", torch::randint(40, {rows, 12})},
                             {"padding", torch::arange(12) >= length}};
          }};
}

inline Network lstm() {
  torch::nn::LSTM net(torch::nn::LSTMOptions(8, 16).num_layers(2).batch_first(true));
  return {"lstm", net.ptr(),
          [net](const Tensors& in) mutable {
            const auto [out, state] = net->forward(in[0]);
            return Tensors{out, std::get<0>(state)};
          },
          [](int64_t rows) { return StateDict{{"x", torch::randn({rows, 5, 8})}}; }};
}

inline Network batch_norm() {
  torch::nn::Sequential net(torch::nn::Conv2d(3, 8, 3), torch::nn::BatchNorm2d(8),
                            torch::nn::ReLU(), torch::nn::Flatten(), torch::nn::Linear(8 * 36, 5));
  net->forward(torch::randn({16, 3, 8, 8}) * 2 + 1);  // running statistics
  return one_input("batch_norm", net, [](int64_t rows) { return pictures(rows, 8); });
}

inline Network two_inputs() {
  auto net = std::make_shared<torch::nn::BilinearImpl>(6, 4, 3);
  return {"two_inputs", net,
          [net](const Tensors& in) { return Tensors{net->forward(in[0], in[1]).tanh()}; },
          [](int64_t rows) {
            return StateDict{{"left", torch::randn({rows, 6})}, {"right", torch::randn({rows, 4})}};
          }};
}

inline Network two_outputs() {
  torch::nn::Linear net(6, 8);
  return {"two_outputs", net.ptr(),
          [net](const Tensors& in) mutable {
            const auto halves = net->forward(in[0]).chunk(2, 1);
            return Tensors{halves[0].sigmoid(), halves[1].softmax(1)};
          },
          [](int64_t rows) { return StateDict{{"x", torch::randn({rows, 6})}}; }};
}

inline Network mlp() {
  return one_input("mlp",
                   torch::nn::Sequential(torch::nn::Linear(16, 32), torch::nn::ReLU(),
                                         torch::nn::Linear(32, 10), torch::nn::LogSoftmax(1)),
                   [](int64_t rows) { return StateDict{{"x", torch::randn({rows, 16})}}; });
}

inline Network resnet18() {
  return one_input("resnet18", vision::models::resnet18(),
                   [](int64_t rows) { return pictures(rows, 64); });
}

inline Network vit() {
  return one_input("vit",
                   vision::models::VisionTransformer(
                       vision::models::VisionTransformerOptions{.image_size = 32,
                                                                .patch_size = 8,
                                                                .num_layers = 2,
                                                                .num_heads = 4,
                                                                .hidden_dim = 32,
                                                                .mlp_dim = 64,
                                                                .num_classes = 10}),
                   [](int64_t rows) { return pictures(rows, 32); });
}

// A network whose last layer is initialized with zeros returns only zeros, so a comparison of the
// outputs would be meaningless.
inline void fill_zeros(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    if (parameter.count_nonzero().item<int64_t>() == 0) parameter.normal_(0, 0.1);
  }
}

/// Returns the networks in evaluation mode. Their weights depend only on the seed.
inline std::vector<Network> networks() {
  torch::manual_seed(0);
  std::vector<Network> all = {mlp(),
                              resnet18(),
                              vit(),
                              one_input("gpt", Gpt(), tokens),
                              text_classifier(),
                              lstm(),
                              batch_norm(),
                              two_inputs(),
                              two_outputs()};
  for (const auto& network : all) {
    network.module->eval();
    fill_zeros(*network.module);
  }
  return all;
}

}  // namespace sconce::test
