#include "sconce/nn/multihead_attention.hpp"

#include <torch/nn/init.h>
#include <torch/types.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "nn/attention_inputs.hpp"
#include "sconce/repr.hpp"

namespace sconce::nn {

namespace {

using torch::Tensor;
using Three = std::array<Tensor, 3>;  // for queries, keys and values

void check_mask(const char* who, const char* name, const Tensor& mask, const Tensor& query,
                const std::vector<std::vector<int64_t>>& shapes) {
  if (!mask.defined()) return;
  TORCH_CHECK(mask.scalar_type() == torch::kBool || mask.is_floating_point(), who,
              ": expected a mask of bool or floats, got ", name, " of ", mask.scalar_type());
  TORCH_CHECK(mask.device() == query.device(), who, ": expected ", name, " on ", query.device(),
              ", as the query is, got one on ", mask.device());
  for (const auto& shape : shapes) {
    if (mask.sizes() == shape) return;
  }
  std::string expected;
  for (const auto& shape : shapes) {
    expected += (expected.empty() ? "" : " or ") + c10::str(c10::IntArrayRef(shape));
  }
  TORCH_CHECK(false, who, ": expected ", name, " of shape ", expected, ", got ", mask.sizes());
}

void check_options(const MultiheadAttentionOptions& options) {
  const char* who = "sconce::nn::MultiheadAttention";
  const int64_t features = options.embed_dim(), heads = options.num_heads();
  TORCH_CHECK(features > 0 && heads > 0 && features % heads == 0, who,
              ": expected positive num_heads that divide a positive embed_dim, got num_heads ",
              heads, " and embed_dim ", features);
  const int64_t kdim = options.kdim().value_or(features), vdim = options.vdim().value_or(features);
  TORCH_CHECK(kdim > 0 && vdim > 0, who, ": expected positive kdim and vdim, got ", kdim, " and ",
              vdim);
  TORCH_CHECK(options.dropout() >= 0 && options.dropout() <= 1, who,
              ": expected a dropout between 0 and 1, got ", options.dropout());
}

// The outputs of one projection with packed weights.
std::vector<Tensor> unpacked(const Tensor& packed, int64_t count) {
  return packed.unflatten(-1, {count, packed.size(-1) / count})
      .unsqueeze(0)
      .transpose(0, -2)
      .squeeze(-2)
      .contiguous()
      .unbind(0);
}

// Applies the weights to inputs (L, N, E) as Python does: packed as far as the inputs are the same.
Three projected(const MultiheadAttentionImpl& m, const Three& inputs) {
  const auto& [query, key, value] = inputs;
  const Tensor& bias = m.in_proj_bias;
  if (m.in_proj_weight.defined() && key.is_same(value) && query.is_same(key)) {
    const auto parts = unpacked(torch::linear(query, m.in_proj_weight, bias), 3);
    return {parts[0], parts[1], parts[2]};
  }
  if (m.in_proj_weight.defined() && key.is_same(value)) {
    const std::vector<int64_t> sizes = {query.size(-1), 2 * query.size(-1)};
    const auto weights = m.in_proj_weight.split_with_sizes(sizes);
    const auto biases = bias.defined() ? bias.split_with_sizes(sizes) : std::vector<Tensor>(2);
    const auto q = torch::linear(query, weights[0], biases[0]);
    const auto parts = unpacked(torch::linear(key, weights[1], biases[1]), 2);
    return {q, parts[0], parts[1]};
  }
  const auto weights = m.in_proj_weight.defined()
                           ? m.in_proj_weight.chunk(3)
                           : std::vector{m.q_proj_weight, m.k_proj_weight, m.v_proj_weight};
  const auto biases = bias.defined() ? bias.chunk(3) : std::vector<Tensor>(3);
  return {torch::linear(query, weights[0], biases[0]), torch::linear(key, weights[1], biases[1]),
          torch::linear(value, weights[2], biases[2])};
}

// Numbers that are added to the scores, or undefined tensors.
struct Masks {
  Tensor attn = {};     // (1 or N * heads, L, S)
  Tensor padding = {};  // (N, S)

  // Makes room for one more key, which nobody hides.
  void widen() {
    for (auto* mask : {&attn, &padding}) {
      if (mask->defined()) *mask = torch::constant_pad_nd(*mask, {0, 1});
    }
  }

  // Returns the mask (N * heads or 1, L or 1, S) that has both.
  Tensor merged(int64_t heads) const {
    if (!padding.defined()) return attn;
    const auto batch = padding.size(0);
    const auto of_heads =
        padding.view({batch, 1, 1, -1}).expand({-1, heads, -1, -1}).reshape({batch * heads, 1, -1});
    return attn.defined() ? attn + of_heads : of_heads;
  }
};

// Returns the inputs (L, N, E), sharing a tensor where they do. Without a batch N is 1, and Python
// then treats the inputs as different ones.
Three sequence_first(const Three& inputs, bool batch_first) {
  const auto& [query, key, value] = inputs;
  if (query.dim() == 2) return {query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)};
  if (!batch_first) return inputs;
  const auto v = value.transpose(1, 0);
  const auto k = key.is_same(value) ? v : key.transpose(1, 0);
  const auto q = query.is_same(key) && key.is_same(value) ? k : query.transpose(1, 0);
  return {q, k, v};
}

// Splits projections (L, N, E) into heads (N * heads, L, E / heads), with the keys that the options
// add.
void split(const MultiheadAttentionImpl& m, Three& heads, Masks& masks) {
  const int64_t batch = heads[0].size(1), count = m.options.num_heads();
  if (m.bias_k.defined()) {
    heads[1] = torch::cat({heads[1], m.bias_k.repeat({1, batch, 1})});
    heads[2] = torch::cat({heads[2], m.bias_v.repeat({1, batch, 1})});
    masks.widen();
  }
  for (auto& x : heads) x = x.view({x.size(0), batch * count, x.size(2) / count}).transpose(0, 1);
  if (!m.options.add_zero_attn()) return;
  for (auto* x : {&heads[1], &heads[2]}) {
    *x = torch::cat({*x, torch::zeros({x->size(0), 1, x->size(2)}, x->options())}, 1);
  }
  masks.widen();
}

// Returns the outputs of the heads (N * heads, L, E / heads), and the weights (N * heads, L, S).
std::pair<Tensor, Tensor> with_weights(const Three& heads, const Tensor& mask, double dropout) {
  const auto& [q, k, v] = heads;
  const auto scaled = q * std::sqrt(1.0 / static_cast<double>(q.size(-1)));
  const auto keys = k.transpose(-2, -1);
  auto weights = mask.defined() ? torch::baddbmm(mask, scaled, keys) : torch::bmm(scaled, keys);
  weights = torch::softmax(weights, -1);
  if (dropout > 0) weights = torch::dropout(weights, dropout, /*train=*/true);
  return {torch::bmm(weights, v), weights};
}

// Returns the outputs of the heads (N, heads, L, E / heads).
Tensor without_weights(const Three& heads, const Tensor& mask, double dropout, bool is_causal,
                       int64_t count) {
  const auto of_batch = [count](const Tensor& x) {
    return x.view({x.size(0) / count, count, x.size(1), x.size(2)});
  };
  std::optional<Tensor> wide;
  if (mask.defined()) wide = mask.size(0) == 1 ? mask.unsqueeze(0) : of_batch(mask);
  return torch::scaled_dot_product_attention(of_batch(heads[0]), of_batch(heads[1]),
                                             of_batch(heads[2]), wide, dropout, is_causal);
}

}  // namespace

void check_attention(const char* who, const MultiheadAttentionOptions& options, const Tensor& query,
                     const Tensor& key, const Tensor& value, const AttentionArgs& args) {
  for (const Tensor* input : {&query, &key, &value}) {
    TORCH_CHECK(input->defined() && !input->is_nested(), who, ": expected dense inputs, got ",
                input->defined() ? "a nested tensor" : "an undefined tensor");
  }
  const auto shapes = c10::str(query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  const int64_t dim = query.dim();
  TORCH_CHECK((dim == 2 || dim == 3) && key.dim() == dim && value.dim() == dim, who,
              ": expected inputs with 3 dimensions, or all with 2 without a batch, got ", shapes);
  const int64_t features = options.embed_dim();
  const int64_t kdim = options.kdim().value_or(features), vdim = options.vdim().value_or(features);
  TORCH_CHECK(query.size(-1) == features && key.size(-1) == kdim && value.size(-1) == vdim, who,
              ": expected ", features, ", ", kdim, " and ", vdim, " features, got inputs ", shapes);
  const int64_t length_dim = dim == 3 && options.batch_first() ? 1 : 0;
  const int64_t length = query.size(length_dim), source = key.size(length_dim);
  const int64_t batch = dim == 3 ? query.size(1 - length_dim) : 1;
  TORCH_CHECK(key.sizes().slice(0, dim - 1) == value.sizes().slice(0, dim - 1) &&
                  (dim == 2 || key.size(1 - length_dim) == batch),
              who, ": expected keys and values of one length, and one batch size, got ", shapes);
  check_mask(who, "key_padding_mask", args.key_padding_mask, query,
             {dim == 3 ? std::vector{batch, source} : std::vector{source}});
  check_mask(who, "attn_mask", args.attn_mask, query,
             {{length, source}, {batch * options.num_heads(), length, source}});
  TORCH_CHECK(!args.is_causal || args.attn_mask.defined(), who,
              ": expected a mask together with is_causal, which is only a hint, got none");
}

Tensor additive_mask(const Tensor& mask, torch::ScalarType dtype) {
  if (!mask.defined() || mask.scalar_type() != torch::kBool) return mask;
  return torch::zeros_like(mask, mask.options().dtype(dtype)).masked_fill_(mask, -INFINITY);
}

MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions from)
    : options(std::move(from)) {
  reset();
}

void MultiheadAttentionImpl::reset() {
  check_options(options);
  const int64_t features = options.embed_dim();
  const int64_t kdim = options.kdim().value_or(features), vdim = options.vdim().value_or(features);
  const auto weight = [this](const char* name, std::vector<int64_t> sizes) {
    return register_parameter(name, torch::empty(sizes));
  };
  if (kdim == features && vdim == features) {
    in_proj_weight = weight("in_proj_weight", {3 * features, features});
  } else {
    q_proj_weight = weight("q_proj_weight", {features, features});
    k_proj_weight = weight("k_proj_weight", {features, kdim});
    v_proj_weight = weight("v_proj_weight", {features, vdim});
  }
  if (options.bias()) in_proj_bias = weight("in_proj_bias", {3 * features});
  if (options.add_bias_kv()) {
    bias_k = weight("bias_k", {1, 1, features});
    bias_v = weight("bias_v", {1, 1, features});
  }
  // The order of the draws is Python's.
  out_proj = register_module(
      "out_proj",
      torch::nn::Linear(torch::nn::LinearOptions(features, features).bias(options.bias())));
  for (const auto& drawn : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
    if (drawn.defined()) torch::nn::init::xavier_uniform_(drawn);
  }
  for (const auto& zero : {in_proj_bias, out_proj->bias}) {
    if (zero.defined()) torch::nn::init::zeros_(zero);
  }
  for (const auto& drawn : {bias_k, bias_v}) {
    if (drawn.defined()) torch::nn::init::xavier_normal_(drawn);
  }
}

void MultiheadAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << repr(*this);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const AttentionArgs& args) {
  check_attention("sconce::nn::MultiheadAttention", options, query, key, value, args);
  const bool is_batched = query.dim() == 3;
  const auto inputs = sequence_first({query, key, value}, options.batch_first());
  const int64_t length = inputs[0].size(0), batch = inputs[0].size(1);
  const int64_t features = options.embed_dim(), count = options.num_heads();

  const bool by_hint = args.is_causal && !args.key_padding_mask.defined() && !args.need_weights;
  Masks masks = {.attn = by_hint ? Tensor() : additive_mask(args.attn_mask, query.scalar_type()),
                 .padding = additive_mask(args.key_padding_mask, query.scalar_type())};
  if (masks.attn.defined() && masks.attn.dim() == 2) masks.attn = masks.attn.unsqueeze(0);
  if (masks.padding.defined() && !is_batched) masks.padding = masks.padding.unsqueeze(0);

  auto heads = projected(*this, inputs);
  split(*this, heads, masks);
  auto mask = masks.merged(count);
  // Under autocast the heads have another type than the query.
  if (mask.defined()) mask = mask.to(heads[0].scalar_type());

  const double dropout = is_training() ? options.dropout() : 0;
  const auto joined = [&](const Tensor& outputs) {  // of the heads, with L first
    const auto rows = outputs.reshape({length * batch, features});
    auto output = torch::linear(rows, out_proj->weight, out_proj->bias);
    output = output.view({length, batch, features});
    if (!is_batched) return output.squeeze(1);
    return options.batch_first() ? output.transpose(1, 0) : output;
  };
  if (!args.need_weights) {
    const auto outputs = without_weights(heads, mask, dropout, by_hint, count);
    return {joined(outputs.permute({2, 0, 1, 3})), Tensor()};
  }
  auto [outputs, weights] = with_weights(heads, mask, dropout);
  const auto output = joined(outputs.transpose(0, 1));
  weights = weights.view({batch, count, length, -1});
  if (args.average_attn_weights) weights = weights.mean(1);
  return {output, is_batched ? weights : weights.squeeze(0)};
}

}  // namespace sconce::nn
