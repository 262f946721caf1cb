#include "sconce/nn/multihead_attention.hpp"

#include <torch/nn/init.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sconce::nn {

namespace {

using torch::Tensor;
using Three = std::array<Tensor, 3>;  // for queries, keys, and values

void check_mask(const char* caller, const char* name, const Tensor& mask, torch::Device device,
                const std::vector<c10::IntArrayRef>& shapes) {
  if (!mask.defined()) return;
  TORCH_CHECK(mask.device() == device, caller, ": expected ", name, " on ", device, ", got ",
              mask.device());
  TORCH_CHECK(mask.scalar_type() == torch::kBool || mask.is_floating_point(), caller,
              ": expected a boolean or floating-point mask, got ", name, " of ",
              mask.scalar_type());
  TORCH_CHECK(std::find(shapes.begin(), shapes.end(), mask.sizes()) != shapes.end(), caller,
              ": expected ", name, " of shape ", c10::Join(" or ", shapes), ", got ", mask.sizes());
}

// Projects the inputs (L, N, E) with as many matrix products as Python, which uses a single product
// when the inputs are the same tensor.
Three projected(const MultiheadAttentionImpl& m, const Three& inputs, bool same_kv, bool same_q) {
  const bool packed = m.in_proj_weight.defined() && same_kv;
  const int64_t features = m.options.embed_dim();
  const auto sizes = !packed  ? std::vector(3, features)
                     : same_q ? std::vector{3 * features}
                              : std::vector{features, 2 * features};
  const auto split = [&](const Tensor& x) {
    return sizes.size() == 1 ? std::vector{x} : x.split_with_sizes(sizes);
  };
  const auto weights = m.in_proj_weight.defined()
                           ? split(m.in_proj_weight)
                           : std::vector{m.q_proj_weight, m.k_proj_weight, m.v_proj_weight};
  const auto biases = m.in_proj_bias.defined() ? split(m.in_proj_bias) : std::vector<Tensor>(3);
  std::vector<Tensor> parts;
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto product = torch::linear(inputs[i], weights[i], biases[i]);
    if (product.size(-1) == features) {
      parts.push_back(product);
      continue;
    }
    const auto apart = product.unflatten(-1, {-1, features}).unsqueeze(0).transpose(0, -2);
    for (const auto& part : apart.squeeze(-2).contiguous().unbind()) parts.push_back(part);
  }
  return {parts[0], parts[1], parts[2]};
}

// Returns values to add to the scores: minus infinity where a bool mask is true.
Tensor additive_mask(const Tensor& mask, torch::ScalarType dtype) {
  if (!mask.defined() || mask.scalar_type() != torch::kBool) return mask;
  return torch::zeros_like(mask, mask.options().dtype(dtype)).masked_fill_(mask, -INFINITY);
}

// Returns a mask of shape (1 or N * heads, 1 or L, S) to add to the attention scores, or an
// undefined tensor if no mask is needed. S includes the appended keys, which are never masked.
Tensor merged_mask(const AttentionArgs& args, const Tensor& query, const Three& heads,
                   int64_t count) {
  auto mask = additive_mask(args.attn_mask, query.scalar_type());
  auto padding = additive_mask(args.key_padding_mask, query.scalar_type());
  if (mask.defined() && mask.dim() == 2) mask = mask.unsqueeze(0);
  if (padding.defined()) {
    const int64_t rows = heads[0].size(0), source = padding.size(-1);
    padding = padding.view({rows / count, 1, 1, source}).expand({-1, count, -1, -1});
    padding = padding.reshape({rows, 1, source});
    mask = mask.defined() ? mask + padding : padding;
  }
  if (!mask.defined()) return mask;
  const int64_t appended = heads[1].size(1) - mask.size(-1);
  if (appended > 0) mask = torch::constant_pad_nd(mask, {0, appended});
  return mask.to(heads[0].scalar_type());  // under autocast, not the type of the query
}

// Splits the projections (L, N, E) into heads (N * heads, L, E / heads), and appends the keys
// requested by the options.
void split(const MultiheadAttentionImpl& m, Three& heads) {
  const int64_t batch = heads[0].size(1), count = m.options.num_heads();
  for (size_t i = 1; m.bias_k.defined() && i < 3; ++i) {
    heads[i] = torch::cat({heads[i], (i == 1 ? m.bias_k : m.bias_v).repeat({1, batch, 1})});
  }
  for (auto& x : heads) x = x.view({x.size(0), batch * count, x.size(2) / count}).transpose(0, 1);
  for (size_t i = 1; m.options.add_zero_attn() && i < 3; ++i) {
    const auto zeros = torch::zeros({heads[i].size(0), 1, heads[i].size(2)}, heads[i].options());
    heads[i] = torch::cat({heads[i], zeros}, 1);
  }
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
  const auto split_heads = [count](const Tensor& x) {
    return x.view({x.size(0) / count, count, x.size(1), x.size(2)});
  };
  std::optional<Tensor> wide;
  if (mask.defined()) wide = mask.size(0) == 1 ? mask.unsqueeze(0) : split_heads(mask);
  return torch::scaled_dot_product_attention(split_heads(heads[0]), split_heads(heads[1]),
                                             split_heads(heads[2]), wide, dropout, is_causal);
}

}  // namespace

void MultiheadAttentionImpl::reset() {
  const int64_t size = options.embed_dim(), heads = options.num_heads();
  TORCH_CHECK(size > 0 && heads > 0 && size % heads == 0,
              "sconce::nn::MultiheadAttention: expected num_heads to divide embed_dim, got ", heads,
              " and ", size);
  TORCH_CHECK(
      options.kdim() > 0 && options.vdim() > 0 && options.dropout() >= 0 && options.dropout() <= 1,
      "sconce::nn::MultiheadAttention: expected kdim and vdim to be at least 1 and dropout to be "
      "between 0 and 1, got ",
      options.kdim(), ", ", options.vdim(), " and ", options.dropout());
  const auto add = [this](const char* name, Tensor& parameter, at::IntArrayRef sizes) {
    parameter = register_parameter(name, torch::empty(sizes));
  };
  const bool packed = options.kdim() == size && options.vdim() == size;
  if (packed) add("in_proj_weight", in_proj_weight, {3 * size, size});
  if (!packed) add("q_proj_weight", q_proj_weight, {size, size});
  if (!packed) add("k_proj_weight", k_proj_weight, {size, options.kdim()});
  if (!packed) add("v_proj_weight", v_proj_weight, {size, options.vdim()});
  if (options.bias()) add("in_proj_bias", in_proj_bias, {3 * size});
  if (options.add_bias_kv()) add("bias_k", bias_k, {1, 1, size});
  if (options.add_bias_kv()) add("bias_v", bias_v, {1, 1, size});
  // Draws random numbers in the same order as Python.
  const auto linear = torch::nn::LinearOptions(size, size).bias(options.bias());
  out_proj = register_module("out_proj", torch::nn::Linear(linear));
  for (const auto& parameter : parameters(/*recurse=*/false)) {
    if (parameter.dim() == 1) torch::nn::init::zeros_(parameter);
    if (parameter.dim() == 2) torch::nn::init::xavier_uniform_(parameter);
    if (parameter.dim() == 3) torch::nn::init::xavier_normal_(parameter);
  }
  if (options.bias()) torch::nn::init::zeros_(out_proj->bias);
}

void MultiheadAttentionImpl::check(const char* caller, const Tensor& query, const Tensor& key,
                                   const Tensor& value, const AttentionArgs& args) const {
  for (const Tensor* input : {&query, &key, &value}) {
    TORCH_CHECK(input->defined() && !input->is_nested(), caller,
                ": expected dense inputs, got an undefined or nested tensor");
  }
  const auto shapes = c10::str(query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  const int64_t dim = query.dim();
  TORCH_CHECK((dim == 2 || dim == 3) && key.dim() == dim && value.dim() == dim, caller,
              ": expected inputs with 3 dimensions, or unbatched inputs with 2, got ", shapes);
  const std::array features = {options.embed_dim(), options.kdim(), options.vdim()};
  TORCH_CHECK((features == std::array{query.size(-1), key.size(-1), value.size(-1)}), caller,
              ": expected ", c10::IntArrayRef(features), " features, got inputs ", shapes);
  const int64_t length_dim = dim == 3 && options.batch_first() ? 1 : 0;
  const int64_t length = query.size(length_dim), source = key.size(length_dim);
  const int64_t batch = dim == 3 ? query.size(1 - length_dim) : 1;
  const auto features_at = static_cast<size_t>(dim - 1);
  TORCH_CHECK(
      key.sizes().slice(0, features_at) == value.sizes().slice(0, features_at) &&
          (dim == 2 || key.size(1 - length_dim) == batch),
      caller,
      ": expected keys and values of the same length, and the same batch size for all inputs, got ",
      shapes);
  const std::array padding = {batch, source}, two = {length, source};
  const std::array three = {batch * options.num_heads(), length, source};
  check_mask(caller, "key_padding_mask", args.key_padding_mask, query.device(),
             {c10::IntArrayRef(padding).slice(dim == 3 ? 0 : 1)});
  check_mask(caller, "attn_mask", args.attn_mask, query.device(), {two, three});
  TORCH_CHECK(!args.is_causal || args.attn_mask.defined(), caller,
              ": expected a mask together with is_causal (is_causal is only a hint), got no mask");
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const AttentionArgs& args) {
  check("sconce::nn::MultiheadAttention", query, key, value, args);
  const bool is_batched = query.dim() == 3, swaps = is_batched && options.batch_first();
  const auto length_first = [&](const Tensor& x) {
    return swaps ? x.transpose(1, 0) : is_batched ? x : x.unsqueeze(1);
  };
  // Python never treats two unbatched inputs as the same tensor.
  const bool same_kv = is_batched && key.is_same(value);
  const Three inputs = {length_first(query), length_first(key), length_first(value)};
  const int64_t length = inputs[0].size(0), batch = inputs[0].size(1);
  const int64_t features = options.embed_dim(), count = options.num_heads();
  auto heads = projected(*this, inputs, same_kv, query.is_same(key));
  split(*this, heads);

  const bool by_hint = args.is_causal && !args.key_padding_mask.defined() && !args.need_weights;
  const auto mask = by_hint ? Tensor() : merged_mask(args, query, heads, count);
  const double dropout = is_training() ? options.dropout() : 0;
  Tensor joined, weights;  // for all heads; outputs start with L
  if (args.need_weights) {
    std::tie(joined, weights) = with_weights(heads, mask, dropout);
    joined = joined.transpose(0, 1);
    weights = weights.view({batch, count, length, weights.size(-1)});
    if (args.average_attn_weights) weights = weights.mean(1);
    if (!is_batched) weights = weights.squeeze(0);
  } else {
    joined = without_weights(heads, mask, dropout, by_hint, count).permute({2, 0, 1, 3});
  }
  const auto rows = joined.reshape({length * batch, features});
  const auto flat = torch::linear(rows, out_proj->weight, out_proj->bias);
  const auto output = flat.view({length, batch, features});
  if (!is_batched) return {output.squeeze(1), weights};
  return {swaps ? output.transpose(1, 0) : output, weights};
}

}  // namespace sconce::nn
