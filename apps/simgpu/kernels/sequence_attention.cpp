// Implements the fused attention kernels whose tensors store positions before heads. The kernels
// accept tensors of shape (batch, length, heads, dim), or sequences of different lengths packed
// into one row. Nested tensors and varlen_attn call these kernels.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <tuple>
#include <vector>

#include "simgpu/kernels/attention.hpp"
#include "simgpu/kernels/own_kernels.hpp"

namespace simgpu {

namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using OptionalInt = std::optional<int64_t>;
using Scale = std::optional<double>;

struct Positions {
  int64_t start = 0;
  int64_t length = 0;
};

struct Sequence {
  Positions query = {};
  Positions key = {};
};

// Query position i attends to key position j if -left <= j - i - offset <= right. A negative left
// or right disables that bound. If positions are counted from the ends of the sequences, the offset
// is the difference between the sequence lengths.
struct Window {
  int64_t left = -1;
  int64_t right = -1;
  bool from_ends = true;
};

// The arguments of one call, with tensors of shape (batch, positions, heads, dim).
struct SequenceCall {
  Tensor query, key, value;
  OptionalTensor bias;
  bool is_packed;  // whether the batch consists of one row of sequences
  std::vector<Sequence> sequences;
  Window window;
  double dropout_p;
  Tensor seed;
  Scale scale;
};

std::vector<int64_t> numbers_of(const Tensor& tensor) {
  const auto numbers = tensor.to(at::kLong).contiguous();
  const auto* data = numbers.const_data_ptr<int64_t>();
  return {data, data + numbers.numel()};
}

std::vector<Sequence> sequences_of(const Tensor& query, const Tensor& key,
                                   const OptionalTensor& query_starts,
                                   const OptionalTensor& key_starts) {
  if (!given(query_starts)) return {{{0, query.size(1)}, {0, key.size(1)}}};
  const auto queries = numbers_of(*query_starts), keys = numbers_of(*key_starts);
  std::vector<Sequence> sequences;
  for (size_t i = 0; i + 1 < queries.size(); ++i) {
    sequences.push_back(
        {{queries[i], queries[i + 1] - queries[i]}, {keys[i], keys[i + 1] - keys[i]}});
  }
  return sequences;
}

Tensor bias_of(const Window& window, int64_t queries, int64_t keys, at::ScalarType type) {
  const auto offset = window.from_ends ? keys - queries : 0;
  const auto distance = at::arange(keys) - at::arange(queries).unsqueeze(1) - offset;
  auto sees = at::ones({queries, keys}, at::kBool);
  if (window.left >= 0) sees = sees.logical_and(distance >= -window.left);
  if (window.right >= 0) sees = sees.logical_and(distance <= window.right);
  return at::zeros_like(sees, type)
      .masked_fill(sees.logical_not(), -std::numeric_limits<double>::infinity());
}

Tensor rows_of(const Tensor& tensor, const Positions& range) {
  return tensor.narrow(1, range.start, range.length).transpose(1, 2);
}

Attention attention_of(const SequenceCall& call, const Sequence& sequence, size_t index) {
  const auto& window = call.window;
  const auto queries = sequence.query.length, keys = sequence.key.length;
  Attention attention{.query = rows_of(call.query, sequence.query),
                      .key = rows_of(call.key, sequence.key),
                      .value = rows_of(call.value, sequence.key),
                      .bias = call.bias,
                      .dropout_p = call.dropout_p,
                      .seed = call.seed + static_cast<int64_t>(index),
                      .scale = call.scale};
  attention.is_causal =
      window.left < 0 && window.right == 0 && (queries == keys || !window.from_ends);
  if (!attention.is_causal && (window.left >= 0 || window.right >= 0)) {
    const auto hidden = bias_of(window, queries, keys, call.query.scalar_type());
    attention.bias = call.bias ? *call.bias + hidden : hidden;
  }
  return attention;
}

bool is_empty(const Sequence& sequence) {
  return sequence.query.length == 0 || sequence.key.length == 0;
}

// Returns the view of shape (batch, heads, query length) in which a kernel stores one sequence's
// logsumexp.
using RowsOf = Tensor (*)(const Tensor& logsumexp, const SequenceCall& call, size_t index);

Tensor flash_rows(const Tensor& logsumexp, const SequenceCall& call, size_t index) {
  const auto& [start, length] = call.sequences[index].query;
  return call.is_packed ? logsumexp.narrow(1, start, length).unsqueeze(0) : logsumexp;
}

Tensor efficient_rows(const Tensor& logsumexp, const SequenceCall& call, size_t index) {
  const auto rows = logsumexp.narrow(2, 0, call.sequences[index].query.length);
  return call.is_packed ? rows.narrow(0, static_cast<int64_t>(index), 1) : rows;
}

Tensor attend_each(const SequenceCall& call, const Tensor& logsumexp, RowsOf logsumexp_rows) {
  const auto& query = call.query;
  auto output =
      at::zeros({query.size(0), query.size(1), query.size(2), call.value.size(3)}, query.options());
  for (size_t i = 0; i < call.sequences.size(); ++i) {
    const auto& sequence = call.sequences[i];
    if (is_empty(sequence)) continue;
    const auto [out, sums] = attend(attention_of(call, sequence, i));
    rows_of(output, sequence.query).copy_(out);
    if (logsumexp.numel() > 0) logsumexp_rows(logsumexp, call, i).copy_(sums);
  }
  return output;
}

AttentionGradients attend_each_backward(const SequenceCall& call, const Tensor& grad,
                                        const Tensor& output, const Tensor& logsumexp,
                                        RowsOf logsumexp_rows, bool needs_bias) {
  AttentionGradients grads{.query = at::zeros_like(call.query),
                           .key = at::zeros_like(call.key),
                           .value = at::zeros_like(call.value)};
  for (size_t i = 0; i < call.sequences.size(); ++i) {
    const auto& sequence = call.sequences[i];
    if (is_empty(sequence)) continue;
    const AttentionOutput out{rows_of(output, sequence.query), logsumexp_rows(logsumexp, call, i)};
    const auto parts = attend_backward(attention_of(call, sequence, i), out,
                                       rows_of(grad, sequence.query), needs_bias);
    rows_of(grads.query, sequence.query).copy_(parts.query);
    rows_of(grads.key, sequence.key).copy_(parts.key);
    rows_of(grads.value, sequence.key).copy_(parts.value);
    grads.bias = parts.bias;
  }
  return grads;
}

Window flash_window(bool is_causal, OptionalInt left, OptionalInt right) {
  return {left.value_or(-1), is_causal ? 0 : right.value_or(-1), true};
}

SequenceCall flash_call(const Tensor& query, const Tensor& key, const Tensor& value,
                        const OptionalTensor& query_starts, const OptionalTensor& key_starts,
                        const Window& window, double dropout_p, const Tensor& seed, Scale scale) {
  const bool is_packed = given(query_starts).has_value();
  const auto with_batch = [&](const Tensor& tensor) {
    return is_packed ? tensor.unsqueeze(0) : tensor;
  };
  const auto q = with_batch(query), k = with_batch(key);
  return {q,      k,         with_batch(value),
          {},     is_packed, sequences_of(q, k, query_starts, key_starts),
          window, dropout_p, seed,
          scale};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_sequences(
    const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& query_starts,
    const OptionalTensor& key_starts, int64_t, int64_t, double dropout_p, bool is_causal,
    bool debug, Scale scale, OptionalInt left, OptionalInt right, const OptionalTensor& used_keys,
    const OptionalTensor& alibi_slopes, const OptionalTensor& block_table, OptionalInt) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !debug && !given(used_keys) && !given(alibi_slopes) && !given(block_table),
      "simulated GPUs: flash attention with a debug mask, seqused_k, alibi_slopes, or a "
      "block_table is not supported");
  const auto seed = attention_seed(dropout_p);
  const auto call = flash_call(query, key, value, query_starts, key_starts,
                               flash_window(is_causal, left, right), dropout_p, seed, scale);
  const auto floats = query.options().dtype(at::kFloat);
  const auto logsumexp = call.is_packed
                             ? at::zeros({query.size(1), query.size(0)}, floats)
                             : at::zeros({query.size(0), query.size(2), query.size(1)}, floats);
  const auto output = attend_each(call, logsumexp, &flash_rows);
  return {call.is_packed ? output.squeeze(0) : output, logsumexp,
          at::stack({seed, seed}).view(at::kUInt64), at::empty({}, at::kUInt64),
          at::empty({0}, query.options())};
}

std::tuple<Tensor, Tensor, Tensor> flash_sequences_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& output, const Tensor& logsumexp, const Tensor& query_starts,
    const Tensor& key_starts, int64_t, int64_t, double dropout_p, bool is_causal,
    const Tensor& random_state, const Tensor&, Scale scale, OptionalInt left, OptionalInt right) {
  const auto call =
      flash_call(query, key, value, query_starts, key_starts, flash_window(is_causal, left, right),
                 dropout_p, random_state.view(at::kLong).select(0, 0), scale);
  const auto rows = [&](const Tensor& tensor) {
    return call.is_packed ? tensor.unsqueeze(0) : tensor;
  };
  auto grads = attend_each_backward(call, rows(grad), rows(output), logsumexp, &flash_rows, false);
  if (!call.is_packed) return {grads.query, grads.key, grads.value};
  return {grads.query.squeeze(0), grads.key.squeeze(0), grads.value.squeeze(0)};
}

// Converts the schema's mask type: no mask, a causal mask aligned with the start of the sequences,
// or a causal mask aligned with the end of the sequences.
Window efficient_window(int64_t mask_type) {
  constexpr int64_t causal_from_ends = 2;
  return {-1, mask_type == 0 ? -1 : 0, mask_type == causal_from_ends};
}

SequenceCall efficient_call(const Tensor& query, const Tensor& key, const Tensor& value,
                            const OptionalTensor& bias, const OptionalTensor& query_starts,
                            const OptionalTensor& key_starts, int64_t mask_type, OptionalInt window,
                            double dropout_p, const Tensor& seed, Scale scale) {
  const bool is_packed = given(query_starts).has_value();
  TORCH_CHECK_NOT_IMPLEMENTED(
      !window.value_or(0) && !(is_packed && given(bias)),
      "simulated GPUs: efficient attention with a window, or with a bias and packed sequences, is "
      "not supported");
  return {query,
          key,
          value,
          given(bias),
          is_packed,
          sequences_of(query, key, query_starts, key_starts),
          efficient_window(mask_type),
          dropout_p,
          seed,
          scale};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t, int64_t> efficient_sequences(
    const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& bias,
    const OptionalTensor& query_starts, const OptionalTensor& key_starts, OptionalInt max_queries,
    OptionalInt max_keys, double dropout_p, int64_t mask_type, bool compute_logsumexp, Scale scale,
    const OptionalTensor& key_lengths, OptionalInt window) {
  TORCH_CHECK_NOT_IMPLEMENTED(!given(key_lengths),
                              "simulated GPUs: efficient attention with seqlen_k is not supported");
  const auto seed = attention_seed(dropout_p);
  const auto call = efficient_call(query, key, value, bias, query_starts, key_starts, mask_type,
                                   window, dropout_p, seed, scale);
  const auto queries = max_queries.value_or(query.size(1));
  const auto batch = call.is_packed ? static_cast<int64_t>(call.sequences.size()) : query.size(0);
  const auto rows = compute_logsumexp ? padded_rows(queries) : 0;
  const auto logsumexp = at::zeros({batch, query.size(2), rows}, query.options().dtype(at::kFloat));
  const auto output = attend_each(call, logsumexp, &efficient_rows);
  return {
      output, logsumexp, seed, at::empty({}, at::kLong), queries, max_keys.value_or(key.size(1))};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_sequences_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const OptionalTensor& bias, const Tensor& output, const OptionalTensor& query_starts,
    const OptionalTensor& key_starts, int64_t, int64_t, const Tensor& logsumexp, double dropout_p,
    const Tensor& seed, const Tensor&, int64_t mask_type, bool needs_bias, Scale scale, OptionalInt,
    OptionalInt window, bool) {
  if (!grad.defined()) return {};
  const auto call = efficient_call(query, key, value, bias, query_starts, key_starts, mask_type,
                                   window, dropout_p, seed, scale);
  const auto grads =
      attend_each_backward(call, grad, output, logsumexp, &efficient_rows, needs_bias);
  return {grads.query, grads.key, grads.value, grads.bias};
}

}  // namespace

void add_sequence_attentions(OwnKernels& kernels) {
  add_own(kernels, "_flash_attention_forward", "", &flash_sequences);
  add_own(kernels, "_flash_attention_backward", "", &flash_sequences_backward);
  add_own(kernels, "_efficient_attention_forward", "", &efficient_sequences);
  add_own(kernels, "_efficient_attention_backward", "", &efficient_sequences_backward);
}

}  // namespace simgpu
