#include "sconce/nn/transformer.hpp"

#include "catch.hpp"
#include "nn/masks.hpp"
#include "sconce/devices.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/error_of.hpp"
#include "support/host_reads.hpp"

using namespace sconce::nn;
using Catch::Matchers::ContainsSubstring;
using sconce::test::causal;
using sconce::test::error_of;
using torch::Tensor;

namespace {

TransformerLayerOptions stack_options() {
  return TransformerLayerOptions(8, 2).dim_feedforward(12).batch_first(true);
}

TransformerEncoder an_encoder(int64_t layers = 2) {
  TransformerEncoderLayer layer(stack_options().dropout(0));
  return TransformerEncoder(
      TransformerEncoderOptions(layer, layers).norm(torch::nn::AnyModule(LayerNorm(8))));
}

std::vector<std::string> names_of(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& entry : state_dict(module)) names.push_back(entry.key());
  return names;
}

}  // namespace

TEST_CASE("a stack has copies of its layer, and making it draws no random numbers") {
  torch::manual_seed(1);
  TransformerEncoderLayer layer(stack_options());
  const auto next = torch::rand(1);
  torch::manual_seed(1);
  layer = TransformerEncoderLayer(stack_options());
  TransformerEncoder encoder(layer, 3);
  CHECK(torch::rand(1).equal(next));
  const auto copies = encoder->parameters(), from = layer->parameters();
  CHECK(copies.size() == 3 * from.size());
  for (size_t i = 0; i < copies.size(); ++i) {
    CHECK(copies[i].equal(from[i % from.size()]));
    CHECK_FALSE(copies[i].is_same(from[i % from.size()]));
    CHECK(copies[i].requires_grad());
  }
}

TEST_CASE("the parameters of the stacks have Python's names, in Python's order") {
  CHECK(names_of(*an_encoder(1)) ==
        std::vector<std::string>{
            "layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias",
            "layers.0.self_attn.out_proj.weight", "layers.0.self_attn.out_proj.bias",
            "layers.0.linear1.weight", "layers.0.linear1.bias", "layers.0.linear2.weight",
            "layers.0.linear2.bias", "layers.0.norm1.weight", "layers.0.norm1.bias",
            "layers.0.norm2.weight", "layers.0.norm2.bias", "norm.weight", "norm.bias"});
  TransformerDecoder decoder(TransformerDecoderLayer(stack_options().bias(false)), 1);
  CHECK(names_of(*decoder) ==
        std::vector<std::string>{
            "layers.0.self_attn.in_proj_weight", "layers.0.self_attn.out_proj.weight",
            "layers.0.multihead_attn.in_proj_weight", "layers.0.multihead_attn.out_proj.weight",
            "layers.0.linear1.weight", "layers.0.linear2.weight", "layers.0.norm1.weight",
            "layers.0.norm2.weight", "layers.0.norm3.weight"});
}

TEST_CASE("a copy of a stack computes the same, with weights of its own") {
  torch::manual_seed(2);
  auto encoder = an_encoder();
  const auto x = torch::randn({3, 5, 8});
  {
    const torch::NoGradGuard no_grad;
    for (auto& p : encoder->parameters()) p.add_(0.1 * torch::randn_like(p));
  }
  const auto expected = encoder(x).detach();
  const auto copy = std::dynamic_pointer_cast<TransformerEncoderImpl>(encoder->clone());
  CHECK(copy->forward(x).equal(expected));
  const torch::NoGradGuard no_grad;
  for (auto& p : copy->parameters()) p.zero_();
  CHECK(encoder(x).equal(expected));
  CHECK(copy->forward(x).count_nonzero().item<int64_t>() == 0);
}

TEST_CASE("replicas of a stack compute what the stack does") {
  torch::manual_seed(3);
  auto encoder = an_encoder();
  DataParallel parallel(encoder, {.device_ids = {sconce::cpu(), sconce::cpu()}});
  const auto x = torch::randn({4, 5, 8});
  const EncoderArgs args = {.src_key_padding_mask = sconce::test::padding({5, 2, 1, 4}, 5)};
  const auto output = parallel.forward(x, args);
  CHECK(torch::allclose(output, encoder(x, args), 1.3e-6, 1e-5));
  output.sum().backward();
  for (const auto& p : encoder->parameters()) CHECK(p.grad().defined());
}

TEST_CASE("a causal mask on the CPU is recognized, whatever its type, without a host read") {
  torch::manual_seed(4);
  auto encoder = an_encoder();
  const auto x = torch::randn({3, 5, 8});
  const auto hinted = encoder(x, EncoderArgs{.src_mask = causal(5), .is_causal = true});
  const auto numbers = torch::zeros({5, 5}).masked_fill(causal(5), -INFINITY);
  for (const auto& mask : {causal(5), numbers, numbers.to(torch::kDouble)}) {
    const sconce::test::HostReads reads;
    CHECK(encoder(x, EncoderArgs{.src_mask = mask}).equal(hinted));
    CHECK(reads.count() == 0);
  }
  const auto other = encoder(x, EncoderArgs{.src_mask = causal(5).logical_not().triu()});
  CHECK_FALSE(torch::allclose(other, hinted, 1e-3, 1e-3));

  TransformerDecoder decoder(TransformerDecoderLayer(stack_options().dropout(0)), 2);
  const auto by_hint = decoder(x, x, DecoderArgs{.tgt_mask = causal(5), .tgt_is_causal = true});
  CHECK(decoder(x, x, DecoderArgs{.tgt_mask = causal(5)}).equal(by_hint));
  const auto no_hint = decoder(x, x, DecoderArgs{.tgt_mask = causal(5), .tgt_is_causal = false});
  CHECK(torch::allclose(no_hint, by_hint, 1.3e-6, 1e-5));
}

TEST_CASE("stacks refuse what does not fit, before any work") {
  auto encoder = an_encoder();
  const auto x = torch::randn({3, 5, 8});
  CHECK(error_of([&] { encoder(x, EncoderArgs{.src_mask = causal(4)}); }) ==
        "sconce::nn::TransformerEncoder: expected attn_mask of shape [5, 5] or [6, 5, 5], got "
        "[4, 4]");
  CHECK_THAT(error_of([&] { encoder(x, EncoderArgs{.is_causal = true}); }),
             ContainsSubstring("expected a mask together with is_causal"));
  CHECK_THAT(error_of([&] { encoder(torch::randn({8})); }),
             ContainsSubstring("expected inputs with 3 dimensions"));
  TransformerDecoder decoder(TransformerDecoderLayer(stack_options()), 2);
  CHECK_THAT(error_of([&] { decoder(x, torch::randn({2, 5, 8})); }),
             ContainsSubstring("sconce::nn::TransformerDecoder: expected keys and values of one"));
  CHECK(error_of([] { TransformerEncoder(TransformerEncoderLayer(8, 2), 0); }) ==
        "sconce::nn::TransformerStackOptions: expected a layer and a positive num_layers, got a "
        "layer and 0");
  CHECK_THAT(error_of([] { TransformerDecoder(TransformerDecoderLayer(nullptr), 2); }),
             ContainsSubstring("got no layer and 2"));
}

TEST_CASE("a Sequential takes an encoder") {
  auto encoder = an_encoder();
  torch::nn::Sequential net(torch::nn::Linear(3, 8), encoder, torch::nn::Linear(8, 2));
  CHECK(net->forward(torch::randn({3, 5, 3})).sizes() == at::IntArrayRef{3, 5, 2});
}
