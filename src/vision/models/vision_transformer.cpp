#include "sconce/vision/models/vision_transformer.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <string>

#include "sconce/nn/layer_norm.hpp"
#include "sconce/nn/multihead_attention.hpp"

namespace sconce::vision::models {

namespace {

using Options = VisionTransformerOptions;
using torch::nn::Dropout;
using torch::nn::Linear;
using torch::nn::Sequential;

nn::LayerNorm make_norm(int64_t features) {
  return nn::LayerNorm(nn::LayerNormOptions(features).eps(1e-6));
}

// LibTorch does not provide `trunc_normal_`. Like PyTorch 2.15, this function redraws values
// outside [-2, 2].
void trunc_normal_(const torch::Tensor& tensor, double std) {
  if (tensor.is_meta()) return;  // there are no values to fill
  const torch::NoGradGuard no_grad;
  tensor.normal_(0, std);
  for (auto outside = tensor.abs() > 2; outside.any().item<bool>(); outside = tensor.abs() > 2) {
    tensor.copy_(at::where(outside, at::empty_like(tensor).normal_(0, std), tensor));
  }
}

Sequential make_mlp(const Options& of) {
  Sequential mlp;
  mlp->push_back(Linear(of.hidden_dim, of.mlp_dim));
  mlp->push_back(torch::nn::GELU());
  mlp->push_back(Dropout(of.dropout));
  mlp->push_back(Linear(of.mlp_dim, of.hidden_dim));
  mlp->push_back(Dropout(of.dropout));
  for (const auto& module : mlp->modules(/*include_self=*/false)) {
    const auto* linear = module->as<Linear>();
    if (linear == nullptr) continue;
    torch::nn::init::xavier_uniform_(linear->weight);
    torch::nn::init::normal_(linear->bias, 0, 1e-6);
  }
  return mlp;
}

struct EncoderBlockImpl : torch::nn::Cloneable<EncoderBlockImpl> {
  explicit EncoderBlockImpl(const Options& of) : options(of) { EncoderBlockImpl::reset(); }

  void reset() override {
    ln_1 = register_module("ln_1", make_norm(options.hidden_dim));
    self_attention = register_module(
        "self_attention",
        nn::MultiheadAttention(nn::MultiheadAttentionOptions(options.hidden_dim, options.num_heads)
                                   .dropout(options.attention_dropout)
                                   .batch_first(true)));
    dropout = register_module("dropout", Dropout(options.dropout));
    ln_2 = register_module("ln_2", make_norm(options.hidden_dim));
    mlp = register_module("mlp", make_mlp(options));
  }

  // (N, S, E)
  torch::Tensor forward(const torch::Tensor& input) {
    auto x = ln_1(input);
    x = std::get<0>(self_attention(x, x, x, nn::AttentionArgs{.need_weights = false}));
    x = dropout(x) + input;
    return x + mlp->forward(ln_2(x));
  }

  Options options;
  nn::LayerNorm ln_1 = nullptr, ln_2 = nullptr;
  nn::MultiheadAttention self_attention = nullptr;
  Dropout dropout = nullptr;
  Sequential mlp = nullptr;
};
TORCH_MODULE(EncoderBlock);

struct EncoderImpl : torch::nn::Cloneable<EncoderImpl> {
  explicit EncoderImpl(const Options& of) : options(of) { EncoderImpl::reset(); }

  void reset() override {
    const int64_t patches = options.image_size / options.patch_size;
    pos_embedding = register_parameter(
        "pos_embedding",
        at::empty({1, patches * patches + 1, options.hidden_dim}).normal_(0, 0.02));
    dropout = register_module("dropout", Dropout(options.dropout));
    layers = Sequential();
    for (int64_t i = 0; i < options.num_layers; ++i) {
      layers->push_back("encoder_layer_" + std::to_string(i), EncoderBlock(options));
    }
    register_module("layers", layers);
    ln = register_module("ln", make_norm(options.hidden_dim));
  }

  // (N, S, E)
  torch::Tensor forward(const torch::Tensor& input) {
    return ln(layers->forward(dropout(input + pos_embedding)));
  }

  Options options;
  torch::Tensor pos_embedding;  // (1, S, E)
  Dropout dropout = nullptr;
  Sequential layers = nullptr;
  nn::LayerNorm ln = nullptr;
};
TORCH_MODULE(Encoder);

Sequential make_heads(const Options& of) {
  Sequential heads;
  if (of.representation_size) {
    heads->push_back("pre_logits", Linear(of.hidden_dim, *of.representation_size));
    heads->push_back("act", torch::nn::Tanh());
  }
  heads->push_back("head", Linear(of.representation_size.value_or(of.hidden_dim), of.num_classes));
  return heads;
}

constexpr auto expected = "sconce::vision::models::VisionTransformer: expected ";

void check_vit(const Options& of) {
  const auto at_least_one = [](const char* name, int64_t value) {
    TORCH_CHECK(value >= 1, expected, name, " to be at least 1, got ", value);
  };
  at_least_one("image_size", of.image_size);
  at_least_one("patch_size", of.patch_size);
  at_least_one("num_layers", of.num_layers);
  at_least_one("num_heads", of.num_heads);
  at_least_one("hidden_dim", of.hidden_dim);
  at_least_one("mlp_dim", of.mlp_dim);
  at_least_one("num_classes", of.num_classes);
  at_least_one("representation_size", of.representation_size.value_or(1));
  TORCH_CHECK(of.image_size % of.patch_size == 0, expected, "patch_size to divide image_size ",
              of.image_size, ", got ", of.patch_size);
  TORCH_CHECK(of.hidden_dim % of.num_heads == 0, expected, "num_heads to divide hidden_dim ",
              of.hidden_dim, ", got ", of.num_heads);
  for (const double p : {of.dropout, of.attention_dropout}) {
    TORCH_CHECK(p >= 0 && p <= 1, expected, "a dropout between 0 and 1, got ", p);
  }
}

}  // namespace

VisionTransformerImpl::VisionTransformerImpl(VisionTransformerOptions options) : options_(options) {
  check_vit(options);
  VisionTransformerImpl::reset();
}

void VisionTransformerImpl::reset() {
  const int64_t patch = options_.patch_size;
  conv_proj = register_module(
      "conv_proj",
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, options_.hidden_dim, patch).stride(patch)));
  class_token = register_parameter("class_token", at::zeros({1, 1, options_.hidden_dim}));
  encoder = torch::nn::AnyModule(Encoder(options_));
  register_module("encoder", encoder.ptr());
  heads = register_module("heads", make_heads(options_));
  trunc_normal_(conv_proj->weight, std::sqrt(1.0 / static_cast<double>(3 * patch * patch)));
  torch::nn::init::zeros_(conv_proj->bias);
  for (const auto& head : heads->named_children()) {
    const auto* linear = head.value()->as<Linear>();
    if (linear == nullptr) continue;
    if (head.key() == "head") {
      torch::nn::init::zeros_(linear->weight);
    } else {
      trunc_normal_(linear->weight, std::sqrt(1.0 / static_cast<double>(options_.hidden_dim)));
    }
    torch::nn::init::zeros_(linear->bias);
  }
}

torch::Tensor VisionTransformerImpl::forward(const torch::Tensor& x) {
  const int64_t size = options_.image_size;
  TORCH_CHECK(x.dim() == 4 && x.size(1) == 3 && x.size(2) == size && x.size(3) == size, expected,
              "images of shape [N, 3, ", size, ", ", size, "], got ", x.sizes());
  const auto patches = conv_proj(x).flatten(2).permute({0, 2, 1});  // (N, S - 1, E)
  const auto tokens = at::cat({class_token.expand({x.size(0), -1, -1}), patches}, 1);
  return heads->forward(encoder.forward(tokens).select(1, 0));
}

VisionTransformer vit_b_16(const VisionTransformerOptions& options) {
  const VisionTransformerOptions of;
  TORCH_CHECK(options.patch_size == of.patch_size && options.num_layers == of.num_layers &&
                  options.num_heads == of.num_heads && options.hidden_dim == of.hidden_dim &&
                  options.mlp_dim == of.mlp_dim,
              "sconce::vision::models::vit_b_16: expected the ViT-B/16 sizes, got different sizes: "
              "build a network with VisionTransformer(options)");
  return VisionTransformer(options);
}

}  // namespace sconce::vision::models
