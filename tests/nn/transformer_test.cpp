#include "sconce/nn/transformer.hpp"

#include <ATen/record_function.h>

#include <atomic>
#include <functional>
#include <string_view>

#include "catch.hpp"
#include "nn/masks.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/optim/adam.hpp"
#include "support/error_of.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"

using namespace sconce::nn;
using Catch::Matchers::ContainsSubstring;
using sconce::amp::AutocastGuard;
using sconce::test::causal;
using sconce::test::error_of;
using sconce::test::near;
using sconce::test::padding;
using torch::Tensor;

namespace {

TransformerLayerOptions layer_options() {
  return TransformerLayerOptions(8, 2).dim_feedforward(12).dropout(0).batch_first(true);
}

}  // namespace

TEST_CASE("transformer layers have the same defaults as in Python") {
  const TransformerEncoderLayerOptions options(6, 2);
  CHECK(options.dim_feedforward() == 2048);
  CHECK(options.dropout() == 0.1);
  CHECK(std::holds_alternative<torch::enumtype::kReLU>(options.activation()));
  CHECK(options.layer_norm_eps() == 1e-5);
  CHECK_FALSE(options.batch_first());
  CHECK_FALSE(options.norm_first());
  CHECK(options.bias());
  CHECK(sconce::repr(TransformerEncoderLayer(6, 2)) ==
        sconce::repr(TransformerEncoderLayer(options)));
  CHECK(sconce::repr(TransformerDecoderLayer(6, 2)) ==
        sconce::repr(TransformerDecoderLayer(options)));
}

TEST_CASE("an encoder layer returns the same results for a padded batch as for each unpadded row") {
  const bool norm_first = GENERATE(true, false);
  torch::manual_seed(1);
  TransformerEncoderLayer layer(layer_options().norm_first(norm_first));
  const std::vector<int64_t> lengths = {5, 2, 1, 4};
  const auto x = torch::randn({4, 5, 8});
  const auto output = layer(x, EncoderArgs{.src_key_padding_mask = padding(lengths, 5)});
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t length = lengths[static_cast<size_t>(i)];
    CHECK(near(output[i].narrow(0, 0, length), layer(x[i].narrow(0, 0, length))));
  }
}

TEST_CASE("a decoder layer returns the same results for a padded batch as for each unpadded row") {
  torch::manual_seed(2);
  TransformerDecoderLayer layer(layer_options());
  const std::vector<int64_t> lengths = {4, 2, 1}, sources = {3, 6, 2};
  const auto tgt = torch::randn({3, 4, 8}), memory = torch::randn({3, 6, 8});
  const auto output = layer(tgt, memory,
                            DecoderArgs{.tgt_mask = causal(4),
                                        .tgt_key_padding_mask = padding(lengths, 4),
                                        .memory_key_padding_mask = padding(sources, 6)});
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t length = lengths[static_cast<size_t>(i)];
    const auto alone =
        layer(tgt[i].narrow(0, 0, length), memory[i].narrow(0, 0, sources[static_cast<size_t>(i)]),
              DecoderArgs{.tgt_mask = causal(length), .tgt_is_causal = true});
    CHECK(near(output[i].narrow(0, 0, length), alone));
  }
}

TEST_CASE(
    "unlike LibTorch's layers, transformer layers with a padding mask can be trained in 16-bit "
    "precision") {
  const auto dtype = GENERATE(torch::kBFloat16, torch::kHalf);
  const bool autocast = GENERATE(true, false);
  torch::manual_seed(3);
  TransformerEncoderLayer encoder(layer_options());
  TransformerDecoderLayer decoder(layer_options());
  auto x = torch::randn({3, 5, 8});
  const EncoderArgs args = {.src_mask = causal(5), .src_key_padding_mask = padding({5, 2, 3}, 5)};
  const auto compute = [&](const Tensor& src) {
    return decoder(src, encoder(src, args),
                   DecoderArgs{.tgt_mask = args.src_mask,
                               .memory_key_padding_mask = args.src_key_padding_mask});
  };
  const auto exact = compute(x);
  if (!autocast) {
    encoder->to(dtype);
    decoder->to(dtype);
    x = x.to(dtype);
  }
  const AutocastGuard guard(torch::kCPU, {.dtype = dtype, .enabled = autocast});
  const auto output = compute(x);
  CHECK(near(output, exact, 0.1, 0.1));
  output.to(torch::kFloat).pow(2).sum().backward();
  for (const auto& p : encoder->parameters()) CHECK(p.grad().isfinite().all().item<bool>());
  for (const auto& p : decoder->parameters()) CHECK(p.grad().isfinite().all().item<bool>());

  // With the current LibTorch, the call to torch::nn::TransformerEncoderLayer fails. If a later
  // LibTorch version supports this call, update docs/limits.md.
  torch::nn::TransformerEncoderLayer theirs(
      torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(12));
  if (!autocast) theirs->to(dtype);
  CHECK_THROWS_WITH(theirs(x, Tensor(), padding({3, 3, 2, 3, 1}, 3)),
                    ContainsSubstring("masked_fill"));
}

TEST_CASE("transformer layers reject invalid arguments before doing any work") {
  int calls = 0;
  TransformerDecoderLayer layer(layer_options().norm_first(true).activation(
      [&calls](const Tensor& x) { return ++calls, x; }));
  TransformerEncoderLayer encoder(layer_options());
  const auto x = torch::randn({3, 5, 8}), memory = torch::randn({3, 4, 8});
  const sconce::test::HostReads reads;
  CHECK(error_of([&] { layer(x, memory, DecoderArgs{.memory_mask = causal(5)}); }) ==
        "sconce::nn::TransformerDecoderLayer: expected attn_mask of shape [5, 4] or [6, 5, 4], got "
        "[5, 5]");
  CHECK_THAT(error_of([&] { layer(x, memory, DecoderArgs{.tgt_is_causal = true}); }),
             ContainsSubstring("expected a mask together with is_causal"));
  CHECK_THAT(error_of([&] { layer(x, memory, DecoderArgs{.memory_is_causal = true}); }),
             ContainsSubstring("expected a mask together with is_causal"));
  CHECK(error_of([&] { encoder(x, EncoderArgs{.src_key_padding_mask = padding({2}, 5)}); }) ==
        "sconce::nn::TransformerEncoderLayer: expected key_padding_mask of shape [3, 5], got "
        "[1, 5]");
  CHECK_THAT(error_of([&] { encoder(torch::randn({3, 5, 6})); }),
             ContainsSubstring("expected [8, 8, 8] features"));
  CHECK(calls == 0);
}

TEST_CASE("transformer layers reject invalid options") {
  const std::string who =
      "sconce::nn::TransformerLayerOptions: expected a positive dim_feedforward and an "
      "activation, ";
  CHECK(error_of([] { TransformerEncoderLayer(layer_options().dim_feedforward(0)); }) ==
        who + "got 0 and one");
  CHECK(error_of([] {
          TransformerDecoderLayer(
              layer_options().activation(std::function<Tensor(const Tensor&)>()));
        }) == who + "got 12 and an empty function");
  CHECK_THAT(error_of([] { TransformerEncoderLayer(TransformerLayerOptions(8, 3)); }),
             ContainsSubstring("expected num_heads to divide embed_dim"));
}

TEST_CASE("transformer layers perform no host reads") {
  TransformerEncoderLayer encoder(layer_options().dropout(0.5));
  TransformerDecoderLayer decoder(layer_options().dropout(0.5));
  const auto x = torch::randn({3, 5, 8}).requires_grad_();
  const auto mask = causal(5), hidden = padding({5, 2, 3}, 5);
  const sconce::test::HostReads reads;
  const auto memory = encoder(x, EncoderArgs{.src_mask = mask, .src_key_padding_mask = hidden});
  decoder(x, memory, DecoderArgs{.tgt_mask = mask, .memory_key_padding_mask = hidden})
      .sum()
      .backward();
  CHECK(reads.count() == 0);
}

TEST_CASE("a Sequential can contain encoder layers") {
  torch::manual_seed(4);
  TransformerEncoderLayer first(layer_options()), second(layer_options());
  torch::nn::Sequential both(first, second);
  const auto x = torch::randn({3, 5, 8});
  CHECK(both->forward(x).equal(second(first(x))));
}

namespace {

// Trains an encoder layer and a decoder layer with masks and dropout.
struct LayerTraining {
  explicit LayerTraining(torch::Device on, double dropout = 0) : device(on) {
    torch::manual_seed(5);
    encoder = TransformerEncoderLayer(layer_options().dropout(dropout));
    decoder = TransformerDecoderLayer(layer_options().dropout(dropout));
    both = torch::nn::ModuleList(encoder, decoder);
    both->to(device);
    optimizer = std::make_unique<sconce::optim::AdamW>(both->parameters());
  }

  std::vector<Tensor> step(const std::vector<Tensor>& batch) {
    optimizer->zero_grad();
    const auto memory = encoder(batch[0], EncoderArgs{.src_key_padding_mask = batch[1]});
    const auto output = decoder(
        batch[0], memory,
        DecoderArgs{
            .tgt_mask = batch[2], .memory_key_padding_mask = batch[1], .tgt_is_causal = true});
    const auto loss = output.pow(2).mean();
    loss.backward();
    optimizer->step();
    return {loss};
  }

  torch::Device device;
  TransformerEncoderLayer encoder = nullptr;
  TransformerDecoderLayer decoder = nullptr;
  torch::nn::ModuleList both;
  std::unique_ptr<sconce::optim::AdamW> optimizer;
};

std::vector<std::vector<Tensor>> masked_batches(torch::Device device, int count) {
  torch::manual_seed(6);
  std::vector<std::vector<Tensor>> batches;
  for (int i = 0; i < count; ++i) {
    const auto x = torch::randn({3, 5, 8}).to(device);
    batches.push_back({x, padding({5, 1 + i % 5, 3}, 5).to(device), causal(5).to(device)});
  }
  return batches;
}

}  // namespace

TEST_CASE("on a GPU, training transformer layers gives the same results as on the CPU", "[gpu]") {
  sconce::test::require_gpu();
  at::globalContext().setAllowTF32CuBLAS(false);
  LayerTraining on_cpu(torch::kCPU), on_gpu(sconce::gpu());
  const auto batches = masked_batches(torch::kCPU, 3), moved = masked_batches(sconce::gpu(), 3);
  for (size_t i = 0; i < batches.size(); ++i) {
    CHECK(near(on_gpu.step(moved[i])[0], on_cpu.step(batches[i])[0], 1e-4, 1e-5));
  }
}

TEST_CASE("on a GPU, a captured step of transformer layers matches the eager loop", "[gpu]") {
  sconce::test::require_gpu();
  LayerTraining plain(sconce::gpu(), 0.2), captured(sconce::gpu(), 0.2);
  const auto batches = masked_batches(sconce::gpu(), 7);
  torch::manual_seed(7);
  std::vector<Tensor> expected;
  for (const auto& batch : batches) expected.push_back(plain.step(batch)[0].detach());
  torch::manual_seed(7);
  sconce::CapturedStep step(sconce::gpu(),
                            [&](const std::vector<Tensor>& batch) { return captured.step(batch); });
  for (size_t i = 0; i < batches.size(); ++i) {
    CHECK(near(step(batches[i])[0], expected[i], 1e-5, 1e-6));
  }
}

TEST_CASE("on a GPU, replicas of a transformer layer match the layer in float32 and bfloat16",
          "[gpu]") {
  sconce::test::require_gpu();
  at::globalContext().setAllowTF32CuBLAS(false);
  torch::manual_seed(8);
  TransformerEncoderLayer layer(layer_options());
  layer->to(sconce::gpu());
  const auto x = torch::randn({4, 5, 8}, sconce::gpu());
  const EncoderArgs args = {.src_key_padding_mask = padding({5, 2, 1, 4}, 5).to(sconce::gpu())};
  const auto whole = layer(x, args);
  whole.pow(2).sum().backward();
  std::vector<Tensor> expected;
  for (const auto& p : layer->parameters()) expected.push_back(p.grad().clone());
  layer->zero_grad();

  const auto last = sconce::gpu(sconce::num_gpus() - 1);
  DataParallel parallel(layer, {.device_ids = {sconce::gpu(), last}});
  const auto output = parallel.forward(x, args);
  CHECK(near(output, whole, 1e-4, 1e-5));
  output.pow(2).sum().backward();
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(near(layer->parameters()[i].grad(), expected[i], 1e-4, 1e-4));
  }
  const AutocastGuard autocast(torch::kCUDA, {.dtype = torch::kBFloat16});
  CHECK(near(parallel.forward(x, args), whole, 0.1, 0.1));
}

namespace {

TransformerEncoder an_encoder(int64_t layers = 2) {
  TransformerEncoderLayer layer(layer_options().dropout(0));
  return TransformerEncoder(layer, layers, torch::nn::AnyModule(LayerNorm(8)));
}

std::vector<std::string> names_of(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& entry : state_dict(module)) names.push_back(entry.key());
  return names;
}

}  // namespace

TEST_CASE("a transformer stack copies its layer and draws no random numbers") {
  torch::manual_seed(1);
  TransformerEncoderLayer layer(layer_options());
  const auto next = torch::rand(1);
  torch::manual_seed(1);
  layer = TransformerEncoderLayer(layer_options());
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

TEST_CASE("a transformer stack built from a frozen layer and norm is frozen, as in Python") {
  TransformerEncoderLayer layer(layer_options());
  for (auto& parameter : layer->linear1->parameters()) parameter.set_requires_grad(false);
  LayerNorm norm(LayerNormOptions(layer->options.d_model()));
  norm->bias.set_requires_grad(false);
  const TransformerEncoder encoder(layer, 2, torch::nn::AnyModule(norm));
  for (const auto& entry : encoder->named_parameters()) {
    INFO(entry.key());
    const bool is_frozen =
        entry.key().find("linear1.") != std::string::npos || entry.key() == "norm.bias";
    CHECK(entry.value().requires_grad() == !is_frozen);
  }
}

TEST_CASE("transformer stack parameters have the same names and order as in Python") {
  CHECK(names_of(*an_encoder(1)) ==
        std::vector<std::string>{
            "layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias",
            "layers.0.self_attn.out_proj.weight", "layers.0.self_attn.out_proj.bias",
            "layers.0.linear1.weight", "layers.0.linear1.bias", "layers.0.linear2.weight",
            "layers.0.linear2.bias", "layers.0.norm1.weight", "layers.0.norm1.bias",
            "layers.0.norm2.weight", "layers.0.norm2.bias", "norm.weight", "norm.bias"});
  TransformerDecoder decoder(TransformerDecoderLayer(layer_options().bias(false)), 1);
  CHECK(names_of(*decoder) ==
        std::vector<std::string>{
            "layers.0.self_attn.in_proj_weight", "layers.0.self_attn.out_proj.weight",
            "layers.0.multihead_attn.in_proj_weight", "layers.0.multihead_attn.out_proj.weight",
            "layers.0.linear1.weight", "layers.0.linear2.weight", "layers.0.norm1.weight",
            "layers.0.norm2.weight", "layers.0.norm3.weight"});
}

TEST_CASE("a copied transformer stack computes the same outputs with separate weights") {
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

TEST_CASE("transformer stack replicas compute the same outputs as the stack") {
  torch::manual_seed(3);
  auto encoder = an_encoder();
  DataParallel parallel(encoder, {.device_ids = {sconce::cpu(), sconce::cpu()}});
  const auto x = torch::randn({4, 5, 8});
  const EncoderArgs args = {.src_key_padding_mask = padding({5, 2, 1, 4}, 5)};
  const auto output = parallel.forward(x, args);
  CHECK(torch::allclose(output, encoder(x, args), 1.3e-6, 1e-5));
  output.sum().backward();
  for (const auto& p : encoder->parameters()) CHECK(p.grad().defined());
}

namespace {

// Counts the calls to scaled_dot_product_attention that receive the causal hint.
class CausalCalls {
 public:
  CausalCalls() {
    count_ = 0;
    const auto callback = [](const at::RecordFunction& call) {
      const std::string_view name = call.name();
      if (name == "aten::scaled_dot_product_attention" && call.inputs()[5].toBool()) ++count_;
      return std::unique_ptr<at::ObserverContext>();
    };
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(callback).needsInputs(true));
  }
  ~CausalCalls() { at::removeCallback(handle_); }
  CausalCalls(const CausalCalls&) = delete;
  CausalCalls& operator=(const CausalCalls&) = delete;

  int64_t count() const { return count_; }

 private:
  inline static std::atomic<int64_t> count_ = 0;
  at::CallbackHandle handle_;
};

}  // namespace

TEST_CASE("a causal mask of any dtype on the CPU is recognized without a host read") {
  torch::manual_seed(4);
  auto encoder = an_encoder();
  TransformerDecoder decoder(TransformerDecoderLayer(layer_options()), 2);
  const auto x = torch::randn({3, 5, 8});
  const auto numbers = torch::zeros({5, 5}).masked_fill(causal(5), -INFINITY);
  const auto expected = encoder(x, EncoderArgs{.src_mask = causal(5), .is_causal = false});
  for (const auto& mask : {causal(5), numbers, numbers.to(torch::kDouble)}) {
    const sconce::test::HostReads reads;
    const CausalCalls calls;
    const auto output = encoder(x, EncoderArgs{.src_mask = mask});
    CHECK(calls.count() == 2);  // in both layers
    decoder(x, x, DecoderArgs{.tgt_mask = mask});
    CHECK(calls.count() == 4);
    CHECK(reads.count() == 0);
    CHECK(near(output, expected));
  }
  const CausalCalls calls;
  encoder(x, EncoderArgs{.src_mask = causal(5).t()});
  encoder(x, EncoderArgs{.src_mask = causal(5).expand({6, 5, 5})});
  encoder(x, EncoderArgs{.src_mask = causal(5), .is_causal = false});
  decoder(x, x, DecoderArgs{.memory_mask = causal(5)});
  CHECK(calls.count() == 0);
}

TEST_CASE("transformer stacks reject invalid arguments before doing any work") {
  auto encoder = an_encoder();
  const auto x = torch::randn({3, 5, 8});
  CHECK(error_of([&] { encoder(x, EncoderArgs{.src_mask = causal(4)}); }) ==
        "sconce::nn::TransformerEncoderLayer: expected attn_mask of shape [5, 5] or [6, 5, 5], got "
        "[4, 4]");
  CHECK_THAT(error_of([&] { encoder(x, EncoderArgs{.is_causal = true}); }),
             ContainsSubstring("expected a mask together with is_causal"));
  CHECK_THAT(error_of([&] { encoder(torch::randn({8})); }),
             ContainsSubstring("expected inputs with 3 dimensions"));
  TransformerDecoder decoder(TransformerDecoderLayer(layer_options()), 2);
  CHECK_THAT(error_of([&] { decoder(x, torch::randn({2, 5, 8})); }),
             ContainsSubstring(
                 "sconce::nn::TransformerDecoderLayer: expected keys and values of the same"));
  CHECK_THAT(
      error_of([&] { encoder(x, EncoderArgs{.src_mask = torch::ones({5, 5}).to(torch::kInt)}); }),
      ContainsSubstring("expected a boolean or floating-point mask, got attn_mask of Int"));
  CHECK(error_of([] { TransformerEncoder(TransformerEncoderLayer(layer_options()), 0); }) ==
        "sconce::nn::TransformerStack: expected a positive num_layers, got 0");
}

TEST_CASE("a Sequential can contain a TransformerEncoder") {
  auto encoder = an_encoder();
  torch::nn::Sequential net(torch::nn::Linear(3, 8), encoder, torch::nn::Linear(8, 2));
  CHECK(net->forward(torch::randn({3, 5, 3})).sizes() == at::IntArrayRef{3, 5, 2});
}
