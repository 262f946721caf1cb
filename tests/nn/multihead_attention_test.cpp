#include "sconce/nn/multihead_attention.hpp"

#include "catch.hpp"
#include "nn/masks.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/devices.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "support/error_of.hpp"
#include "support/host_reads.hpp"

using namespace sconce::nn;
using Catch::Matchers::ContainsSubstring;
using sconce::amp::AutocastGuard;
using sconce::test::causal;
using sconce::test::error_of;
using sconce::test::near;
using sconce::test::padding;
using torch::Tensor;

namespace {

MultiheadAttention batch_first(int64_t embed_dim, int64_t num_heads) {
  return MultiheadAttention(MultiheadAttentionOptions(embed_dim, num_heads).batch_first(true));
}

}  // namespace

TEST_CASE("MultiheadAttention has the same defaults as in Python") {
  const MultiheadAttentionOptions options(6, 2);
  CHECK(options.dropout() == 0);
  CHECK(options.bias());
  CHECK_FALSE(options.add_bias_kv());
  CHECK_FALSE(options.add_zero_attn());
  CHECK(options.kdim() == 6);
  CHECK(options.vdim() == 6);
  CHECK_FALSE(options.batch_first());
  const AttentionArgs args;
  CHECK(args.need_weights);
  CHECK(args.average_attn_weights);
  CHECK_FALSE(args.is_causal);
}

TEST_CASE("attention returns the same results for a padded batch as for each unpadded row") {
  const bool need_weights = GENERATE(true, false);
  torch::manual_seed(1);
  auto attention = batch_first(8, 2);
  const std::vector<int64_t> lengths = {5, 2, 1, 4};
  const auto x = torch::randn({4, 5, 8});
  const auto [output, weights] = attention(
      x, x, x,
      AttentionArgs{.key_padding_mask = padding(lengths, 5), .need_weights = need_weights});
  CHECK(weights.defined() == need_weights);
  for (int64_t i = 0; i < 4; ++i) {
    const auto row = x[i].narrow(0, 0, lengths[static_cast<size_t>(i)]);
    const auto [alone, alone_weights] =
        attention(row, row, row, AttentionArgs{.need_weights = need_weights});
    CHECK(near(output[i].narrow(0, 0, row.size(0)), alone));
    if (!need_weights) continue;
    CHECK(near(weights[i].narrow(0, 0, row.size(0)).narrow(1, 0, row.size(0)), alone_weights));
    CHECK(weights[i].narrow(1, row.size(0), 5 - row.size(0)).count_nonzero().item<int64_t>() == 0);
  }
}

TEST_CASE(
    "attention with bool or float masks can be trained in 16-bit precision, and its outputs are "
    "close to float32 outputs") {
  const auto dtype = GENERATE(torch::kBFloat16, torch::kHalf);
  const bool need_weights = GENERATE(true, false);
  const bool autocast = GENERATE(true, false);
  const bool of_floats = GENERATE(true, false);
  torch::manual_seed(2);
  auto attention = batch_first(8, 2);
  auto x = torch::randn({3, 5, 8});
  AttentionArgs args = {.key_padding_mask = padding({5, 2, 3}, 5),
                        .need_weights = need_weights,
                        .attn_mask = causal(5)};
  if (of_floats) {  // 32 bits, regardless of the input type
    for (auto* mask : {&args.key_padding_mask, &args.attn_mask}) {
      *mask = torch::zeros(mask->sizes()).masked_fill(*mask, -INFINITY);
    }
  }
  const auto exact = std::get<0>(attention(x, x, x, args));
  if (!autocast) {
    attention->to(dtype);
    x = x.to(dtype);
  }
  x.requires_grad_();
  const AutocastGuard guard(torch::kCPU, {.dtype = dtype, .enabled = autocast});
  const auto output = std::get<0>(attention(x, x, x, args));
  CHECK(output.scalar_type() == dtype);
  CHECK(torch::allclose(output.to(torch::kFloat), exact, 0.05, 0.05));
  output.to(torch::kFloat).pow(2).sum().backward();
  CHECK(x.grad().isfinite().all().item<bool>());
  CHECK(x.grad().count_nonzero().item<int64_t>() > 0);
  for (const auto& p : attention->parameters()) CHECK(p.grad().isfinite().all().item<bool>());
}

TEST_CASE("attention returns the same output with the causal hint as with the causal mask") {
  torch::manual_seed(3);
  auto attention = batch_first(8, 2);
  const auto x = torch::randn({3, 5, 8});
  AttentionArgs args = {.need_weights = false, .attn_mask = causal(5)};
  const auto by_mask = std::get<0>(attention(x, x, x, args));
  args.is_causal = true;
  CHECK(near(std::get<0>(attention(x, x, x, args)), by_mask));
  args.attn_mask = torch::zeros({5, 5});  // the hint is trusted
  CHECK(near(std::get<0>(attention(x, x, x, args)), by_mask));
  args.need_weights = true;  // the mask is trusted
  CHECK_FALSE(near(std::get<0>(attention(x, x, x, args)), by_mask));
}

TEST_CASE("attention rejects invalid arguments before doing any work") {
  auto attention = batch_first(8, 2);
  const auto x = torch::randn({3, 5, 8}), memory = torch::randn({3, 4, 8});
  const auto error = [&](const AttentionArgs& args) {
    return error_of([&] { attention(x, memory, memory, args); });
  };
  const std::string who = "sconce::nn::MultiheadAttention: ";
  CHECK(error({.key_padding_mask = padding({3, 3, 3}, 5)}) ==
        who + "expected key_padding_mask of shape [3, 4], got [3, 5]");
  CHECK(error({.attn_mask = causal(5)}) ==
        who + "expected attn_mask of shape [5, 4] or [6, 5, 4], got [5, 5]");
  CHECK(error({.key_padding_mask = torch::ones({3, 4}, torch::kInt64)}) ==
        who + "expected a boolean or floating-point mask, got key_padding_mask of Long");
  CHECK(error({.is_causal = true}) ==
        who + "expected a mask together with is_causal (is_causal is only a hint), got no mask");

  const auto shapes = [&](const Tensor& query, const Tensor& key, const Tensor& value) {
    return error_of([&] { attention(query, key, value); });
  };
  CHECK(shapes(x, memory[0], memory) ==
        who +
            "expected inputs with 3 dimensions, or unbatched inputs with 2, got [3, 5, 8], "
            "[4, 8] and [3, 4, 8]");
  CHECK(shapes(x, memory.narrow(2, 0, 6), memory) ==
        who + "expected [8, 8, 8] features, got inputs [3, 5, 8], [3, 4, 6] and [3, 4, 8]");
  CHECK(shapes(x, memory, x) ==
        who +
            "expected keys and values of the same length, and the same batch size for all inputs, "
            "got [3, 5, 8], [3, 4, 8] and [3, 5, 8]");
  CHECK_THAT(shapes(x, memory.narrow(0, 0, 2), memory.narrow(0, 0, 2)),
             ContainsSubstring("and the same batch size for all inputs"));
  const auto nested = at::_nested_tensor_from_tensor_list({x[0], memory[0]});
  CHECK(shapes(nested, nested, nested) ==
        who + "expected dense inputs, got an undefined or nested tensor");
  CHECK(shapes(x, Tensor(), x) == who + "expected dense inputs, got an undefined or nested tensor");
}

TEST_CASE("attention accepts an empty batch and an empty query") {
  MultiheadAttention attention(MultiheadAttentionOptions(8, 2));
  const auto memory = torch::randn({5, 3, 8});
  const auto [nothing, its_weights] =
      attention->forward(memory.slice(1, 0, 0), memory.slice(1, 0, 0), memory.slice(1, 0, 0));
  CHECK(nothing.sizes() == c10::IntArrayRef{5, 0, 8});
  CHECK(its_weights.sizes() == c10::IntArrayRef{0, 5, 5});
  const auto [none, weights] = attention->forward(memory.slice(0, 0, 0), memory, memory);
  CHECK(none.sizes() == c10::IntArrayRef{0, 3, 8});
  CHECK(weights.sizes() == c10::IntArrayRef{3, 0, 5});
}

TEST_CASE("attention rejects a num_heads that does not divide embed_dim") {
  const std::string who = "sconce::nn::MultiheadAttention: expected num_heads to divide embed_dim";
  CHECK(error_of([] { MultiheadAttention(8, 3); }) == who + ", got 3 and 8");
  CHECK(error_of([] { MultiheadAttention(8, 0); }) == who + ", got 0 and 8");
  CHECK(error_of([] { MultiheadAttention(0, 1); }) == who + ", got 1 and 0");
}

TEST_CASE("attention rejects out-of-range options and a mask on a different device") {
  const std::string who =
      "sconce::nn::MultiheadAttention: expected kdim and vdim to be at least 1 and dropout to be "
      "between 0 and 1, got ";
  const MultiheadAttentionOptions options(8, 2);
  const auto with = [](MultiheadAttentionOptions bad) {
    return error_of([&bad] { MultiheadAttention attention(bad); });
  };
  CHECK(with(MultiheadAttentionOptions(options).dropout(1.5)) == who + "8, 8 and 1.5");
  CHECK(with(MultiheadAttentionOptions(options).kdim(0)) == who + "0, 8 and 0");
  CHECK(with(MultiheadAttentionOptions(options).vdim(-1)) == who + "8, -1 and 0");
  MultiheadAttention attention(options);
  const auto x = torch::zeros({3, 1, 8});
  const auto mask = torch::zeros({3, 3}, torch::kMeta);
  CHECK(error_of([&] { attention(x, x, x, AttentionArgs{.attn_mask = mask}); }) ==
        "sconce::nn::MultiheadAttention: expected attn_mask on cpu, got meta");
}

TEST_CASE("a copy of MultiheadAttention computes the same outputs with separate weights") {
  torch::manual_seed(4);
  MultiheadAttention attention(
      MultiheadAttentionOptions(8, 2).kdim(6).add_bias_kv(true).add_zero_attn(true));
  const auto x = torch::randn({5, 3, 8}), key = torch::randn({4, 3, 6});
  const auto value = torch::randn({4, 3, 8});
  const auto copy = std::dynamic_pointer_cast<MultiheadAttentionImpl>(attention->clone());
  CHECK(std::get<0>(copy->forward(x, key, value)).equal(std::get<0>(attention(x, key, value))));
  const torch::NoGradGuard no_grad;
  copy->out_proj->weight.zero_();
  copy->bias_k.zero_();
  CHECK(attention->out_proj->weight.count_nonzero().item<int64_t>() > 0);
  CHECK(attention->bias_k.count_nonzero().item<int64_t>() > 0);
}

TEST_CASE("attention performs no host reads") {
  const bool need_weights = GENERATE(true, false);
  auto attention = batch_first(8, 2);
  attention->options.dropout(0.5);
  const auto x = torch::randn({3, 5, 8}).requires_grad_();
  const AttentionArgs args = {.key_padding_mask = padding({5, 2, 3}, 5),
                              .need_weights = need_weights,
                              .attn_mask = causal(5)};
  const sconce::test::HostReads reads;
  std::get<0>(attention(x, x, x, args)).sum().backward();
  CHECK(reads.count() == 0);
}

TEST_CASE("DataParallel splits attention's padding mask along with the inputs") {
  torch::manual_seed(5);
  auto attention = batch_first(8, 2);
  DataParallel parallel(attention, {.device_ids = {sconce::cpu(), sconce::cpu()}});
  const auto x = torch::randn({4, 5, 8});
  const AttentionArgs args = {.key_padding_mask = padding({5, 2, 1, 4}, 5)};
  const auto [output, weights] = parallel.forward(x, x, x, args);
  const auto [whole, whole_weights] = attention(x, x, x, args);
  CHECK(near(output, whole));
  CHECK(near(weights, whole_weights));
}
