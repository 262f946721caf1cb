#include "sconce/nn/transformer_layer.hpp"

#include <torch/types.h>

#include <functional>
#include <utility>
#include <variant>

#include "nn/attention_inputs.hpp"
#include "sconce/repr.hpp"

namespace sconce::nn {

namespace {

// A part of a layer with the sum of its input and its norm.
template <class Part>
torch::Tensor with_residual(const torch::Tensor& x, LayerNorm& norm, bool norm_first,
                            const Part& part) {
  if (norm_first) return x + part(norm->forward(x));
  return norm->forward(x + part(x));
}

}  // namespace

template <class Derived>
TransformerLayer<Derived>::TransformerLayer(TransformerLayerOptions from)
    : options(std::move(from)) {
  const auto* function =
      std::get_if<std::function<torch::Tensor(const torch::Tensor&)>>(&options.activation());
  TORCH_CHECK(function == nullptr || *function,
              "sconce::nn::TransformerLayerOptions: expected an activation, got an empty function");
  TORCH_CHECK(options.dim_feedforward() > 0,
              "sconce::nn::TransformerLayerOptions: expected a positive dim_feedforward, got ",
              options.dim_feedforward());
}

template <class Derived>
void TransformerLayer<Derived>::pretty_print(std::ostream& stream) const {
  stream << repr(*this);
}

template <class Derived>
MultiheadAttention TransformerLayer<Derived>::add_attention(const std::string& name) {
  return this->register_module(
      name, MultiheadAttention(MultiheadAttentionOptions(options.d_model(), options.nhead())
                                   .dropout(options.dropout())
                                   .bias(options.bias())
                                   .batch_first(options.batch_first())));
}

template <class Derived>
void TransformerLayer<Derived>::add_linears() {
  const auto linear = [this](int64_t from, int64_t to) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(options.bias()));
  };
  const int64_t outer = options.d_model(), inner = options.dim_feedforward();
  linear1 = this->register_module("linear1", linear(outer, inner));
  dropout = add_dropout("dropout");
  linear2 = this->register_module("linear2", linear(inner, outer));
}

template <class Derived>
LayerNorm TransformerLayer<Derived>::add_norm(const std::string& name) {
  return this->register_module(
      name,
      LayerNorm(
          LayerNormOptions(options.d_model()).eps(options.layer_norm_eps()).bias(options.bias())));
}

template <class Derived>
torch::nn::Dropout TransformerLayer<Derived>::add_dropout(const std::string& name) {
  return this->register_module(name, torch::nn::Dropout(options.dropout()));
}

// LibTorch's Linear computes inputs of three dimensions in other steps than Python's, so the linear
// layers are applied here.
template <class Derived>
torch::Tensor TransformerLayer<Derived>::feed_forward(const torch::Tensor& x) {
  const auto& activation = options.activation();
  auto inner = torch::linear(x, linear1->weight, linear1->bias);
  if (std::holds_alternative<torch::enumtype::kReLU>(activation)) {
    inner = torch::relu(inner);
  } else if (std::holds_alternative<torch::enumtype::kGELU>(activation)) {
    inner = torch::gelu(inner);
  } else {
    inner = std::get<std::function<torch::Tensor(const torch::Tensor&)>>(activation)(inner);
  }
  return torch::linear(dropout->forward(inner), linear2->weight, linear2->bias);
}

template class TransformerLayer<TransformerEncoderLayerImpl>;
template class TransformerLayer<TransformerDecoderLayerImpl>;

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions from)
    : TransformerLayer(std::move(from)) {
  reset();
}

void TransformerEncoderLayerImpl::reset() {
  self_attn = add_attention("self_attn");
  add_linears();
  norm1 = add_norm("norm1");
  norm2 = add_norm("norm2");
  dropout1 = add_dropout("dropout1");
  dropout2 = add_dropout("dropout2");
}

torch::Tensor TransformerEncoderLayerImpl::forward(const torch::Tensor& src,
                                                   const EncoderArgs& args) {
  const AttentionArgs to_src = attention_args(args);
  check_attention("sconce::nn::TransformerEncoderLayer", self_attn->options, src, src, src, to_src);
  const bool norm_first = options.norm_first();
  const auto x = with_residual(src, norm1, norm_first, [&](const torch::Tensor& in) {
    return dropout1->forward(std::get<0>(self_attn->forward(in, in, in, to_src)));
  });
  return with_residual(x, norm2, norm_first, [&](const torch::Tensor& in) {
    return dropout2->forward(feed_forward(in));
  });
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(TransformerDecoderLayerOptions from)
    : TransformerLayer(std::move(from)) {
  reset();
}

void TransformerDecoderLayerImpl::reset() {
  self_attn = add_attention("self_attn");
  multihead_attn = add_attention("multihead_attn");
  add_linears();
  norm1 = add_norm("norm1");
  norm2 = add_norm("norm2");
  norm3 = add_norm("norm3");
  dropout1 = add_dropout("dropout1");
  dropout2 = add_dropout("dropout2");
  dropout3 = add_dropout("dropout3");
}

torch::Tensor TransformerDecoderLayerImpl::forward(const torch::Tensor& tgt,
                                                   const torch::Tensor& memory,
                                                   const DecoderArgs& args) {
  check_decoder("sconce::nn::TransformerDecoderLayer", self_attn->options, tgt, memory, args);
  const auto [to_tgt, to_memory] = attention_args(args);
  const bool norm_first = options.norm_first();
  auto x = with_residual(tgt, norm1, norm_first, [&, &own = to_tgt](const torch::Tensor& in) {
    return dropout1->forward(std::get<0>(self_attn->forward(in, in, in, own)));
  });
  x = with_residual(x, norm2, norm_first, [&, &other = to_memory](const torch::Tensor& in) {
    return dropout2->forward(std::get<0>(multihead_attn->forward(in, memory, memory, other)));
  });
  return with_residual(x, norm3, norm_first, [&](const torch::Tensor& in) {
    return dropout3->forward(feed_forward(in));
  });
}

}  // namespace sconce::nn
