#include "sconce/nn/transformer.hpp"

#include "nn/copy_module.hpp"
#include "nn/keep_generator.hpp"

namespace sconce::nn {

namespace {

using torch::Tensor;
using torch::nn::Dropout;
using Function = std::function<Tensor(const Tensor&)>;

// Registers the parts in Python's order, which is also the order in which random numbers are drawn.
void add_parts(torch::nn::Module& layer, TransformerParts& parts, MultiheadAttention* cross,
               const std::vector<LayerNorm*>& norms, const std::vector<Dropout*>& dropouts) {
  const auto& o = parts.options;
  const auto* function = std::get_if<Function>(&o.activation());
  TORCH_CHECK(o.dim_feedforward() > 0 && (!function || *function),
              "sconce::nn::TransformerLayerOptions: expected a positive dim_feedforward and an "
              "activation, got ",
              o.dim_feedforward(), " and ", function && !*function ? "an empty function" : "one");
  const int64_t size = o.d_model(), inner = o.dim_feedforward();
  auto attention = MultiheadAttentionOptions(size, o.nhead()).dropout(o.dropout()).bias(o.bias());
  attention.batch_first(o.batch_first());
  parts.self_attn = layer.register_module("self_attn", MultiheadAttention(attention));
  if (cross) *cross = layer.register_module("multihead_attn", MultiheadAttention(attention));
  const auto widening = torch::nn::LinearOptions(size, inner).bias(o.bias());
  const auto narrowing = torch::nn::LinearOptions(inner, size).bias(o.bias());
  parts.linear1 = layer.register_module("linear1", torch::nn::Linear(widening));
  parts.dropout = layer.register_module("dropout", Dropout(o.dropout()));
  parts.linear2 = layer.register_module("linear2", torch::nn::Linear(narrowing));
  const auto norm_options = LayerNormOptions(size).eps(o.layer_norm_eps()).bias(o.bias());
  const double p = o.dropout();
  int norm = 0, dropout = 0;
  for (auto* m : norms)
    *m = layer.register_module(c10::str("norm", ++norm), LayerNorm(norm_options));
  for (auto* m : dropouts) *m = layer.register_module(c10::str("dropout", ++dropout), Dropout(p));
}

AttentionArgs without_weights(const Tensor& padding, const Tensor& mask, bool is_causal) {
  return {padding, /*need_weights=*/false, mask, /*average_attn_weights=*/true, is_causal};
}

// For 3-dim inputs, LibTorch's Linear uses a different sequence of operations than Python's Linear.
// Therefore, this function applies the two linear layers manually.
Tensor feed_forward(TransformerParts& of, const Tensor& x) {
  const auto& activation = of.options.activation();
  auto inner = torch::linear(x, of.linear1->weight, of.linear1->bias);
  const auto* function = std::get_if<Function>(&activation);
  const bool is_relu = std::holds_alternative<torch::enumtype::kReLU>(activation);
  inner = function ? (*function)(inner) : is_relu ? torch::relu(inner) : torch::gelu(inner);
  return torch::linear(of.dropout(inner), of.linear2->weight, of.linear2->bias);
}

// Returns whether the mask is on the CPU and equals the causal mask of its size.
bool is_causal_mask(const Tensor& mask) {
  const bool is_seen = mask.defined() && mask.is_cpu() && mask.dim() == 2 &&
                       !c10::isIntegralType(mask.scalar_type(), /*includeBool=*/false);
  return is_seen && mask.equal(torch::full_like(mask, -INFINITY).triu(1));
}

}  // namespace

void TransformerEncoderLayerImpl::reset() {
  add_parts(*this, *this, nullptr, {&norm1, &norm2}, {&dropout1, &dropout2});
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const EncoderArgs& args) {
  const auto to_src =
      without_weights(args.src_key_padding_mask, args.src_mask, args.is_causal.value_or(false));
  self_attn->check("sconce::nn::TransformerEncoderLayer", src, src, src, to_src);
  if (options.norm_first()) {
    const auto in = norm1(src);
    const auto x = src + dropout1(std::get<0>(self_attn(in, in, in, to_src)));
    return x + dropout2(feed_forward(*this, norm2(x)));
  }
  const auto x = norm1(src + dropout1(std::get<0>(self_attn(src, src, src, to_src))));
  return norm2(x + dropout2(feed_forward(*this, x)));
}

void TransformerDecoderLayerImpl::reset() {
  add_parts(*this, *this, &multihead_attn, {&norm1, &norm2, &norm3},
            {&dropout1, &dropout2, &dropout3});
}

Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory,
                                            const DecoderArgs& args) {
  const auto to_tgt =
      without_weights(args.tgt_key_padding_mask, args.tgt_mask, args.tgt_is_causal.value_or(false));
  const auto to_memory =
      without_weights(args.memory_key_padding_mask, args.memory_mask, args.memory_is_causal);
  self_attn->check("sconce::nn::TransformerDecoderLayer", tgt, tgt, tgt, to_tgt);
  multihead_attn->check("sconce::nn::TransformerDecoderLayer", tgt, memory, memory, to_memory);
  if (options.norm_first()) {
    const auto in = norm1(tgt);
    auto x = tgt + dropout1(std::get<0>(self_attn(in, in, in, to_tgt)));
    x = x + dropout2(std::get<0>(multihead_attn(norm2(x), memory, memory, to_memory)));
    return x + dropout3(feed_forward(*this, norm3(x)));
  }
  auto x = norm1(tgt + dropout1(std::get<0>(self_attn(tgt, tgt, tgt, to_tgt))));
  x = norm2(x + dropout2(std::get<0>(multihead_attn(x, memory, memory, to_memory))));
  return norm3(x + dropout3(feed_forward(*this, x)));
}

template <class Derived, class Layer>
void TransformerStack<Derived, Layer>::reset() {
  TORCH_CHECK(num_layers_ > 0, "sconce::nn::TransformerStack: expected a positive num_layers, got ",
              num_layers_);
  const KeepGenerator kept;  // cloning draws random numbers before copying the weights
  layers = this->register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < num_layers_; ++i) {
    layers->push_back(layer_->clone());
    copy_requires_grad(*layer_, *layers[static_cast<size_t>(i)]);
  }
  if (norm.is_empty()) return;
  auto copy = norm.clone();
  copy_requires_grad(*norm.ptr(), *copy.ptr());
  norm = std::move(copy);
  this->register_module("norm", norm.ptr());
}

template class TransformerStack<TransformerEncoderImpl, TransformerEncoderLayer>;
template class TransformerStack<TransformerDecoderImpl, TransformerDecoderLayer>;

Tensor TransformerEncoderImpl::forward(const Tensor& src, const EncoderArgs& args) {
  auto each = args;
  if (!args.is_causal) each.is_causal = is_causal_mask(args.src_mask);
  auto x = src;
  for (auto& layer : *layers) x = layer->as<TransformerEncoderLayer>()->forward(x, each);
  return norm.is_empty() ? x : norm.forward(x);
}

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory,
                                       const DecoderArgs& args) {
  auto each = args;
  if (!args.tgt_is_causal) each.tgt_is_causal = is_causal_mask(args.tgt_mask);
  auto x = tgt;
  for (auto& layer : *layers) x = layer->as<TransformerDecoderLayer>()->forward(x, memory, each);
  return norm.is_empty() ? x : norm.forward(x);
}

}  // namespace sconce::nn
