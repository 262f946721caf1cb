// The file transformer_random.cpp compares Transformer with Python.
#include "sconce/nn/transformer_model.hpp"

#include <cmath>

#include "catch.hpp"
#include "nn/masks.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/error_of.hpp"

using namespace sconce::nn;
using Catch::Matchers::ContainsSubstring;
using sconce::test::causal;
using sconce::test::error_of;
using torch::Tensor;

TEST_CASE("Transformer has the same defaults and state dict keys as in Python") {
  const TransformerOptions options;
  CHECK(options.d_model() == 512);
  CHECK(options.nhead() == 8);
  CHECK(options.num_encoder_layers() == 6);
  CHECK(options.num_decoder_layers() == 6);
  CHECK(options.dim_feedforward() == 2048);
  CHECK(options.dropout() == 0.1);
  CHECK(std::holds_alternative<torch::enumtype::kReLU>(options.activation()));
  CHECK(options.layer_norm_eps() == 1e-5);
  CHECK_FALSE(options.batch_first());
  CHECK_FALSE(options.norm_first());
  CHECK(options.bias());
  const Transformer model(
      TransformerOptions(4, 2).num_encoder_layers(1).num_decoder_layers(2).dim_feedforward(3));
  const auto keys = state_dict(*model).keys();
  CHECK(keys.size() == 12 + 2 + 2 * 18 + 2);
  CHECK(keys.front() == "encoder.layers.0.self_attn.in_proj_weight");
  CHECK(keys.back() == "decoder.norm.bias");
  CHECK(sconce::repr(*model).starts_with("Transformer(\n  (encoder): TransformerEncoder(\n"));
}

TEST_CASE("a Transformer's causal mask is -inf above the diagonal and 0 elsewhere") {
  const auto mask = TransformerImpl::generate_square_subsequent_mask(4);
  CHECK(mask.equal(torch::zeros({4, 4}).masked_fill(causal(4), -INFINITY)));
  CHECK(mask.scalar_type() == torch::kFloat);
  CHECK(TransformerImpl::generate_square_subsequent_mask(3, torch::kBFloat16).scalar_type() ==
        torch::kBFloat16);
}

namespace {

// In Python, the encoder and the decoder can be arbitrary modules.
struct AddOneImpl : torch::nn::Cloneable<AddOneImpl> {
  AddOneImpl() { reset(); }
  void reset() override { weight = register_parameter("weight", torch::ones({1, 1})); }
  Tensor forward(const Tensor& src, const EncoderArgs& /*args*/) { return src + 1; }
  Tensor weight;
};
TORCH_MODULE(AddOne);
struct AddMemoryImpl : torch::nn::Cloneable<AddMemoryImpl> {
  void reset() override {}
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderArgs& /*args*/) {
    return tgt + memory;
  }
};
TORCH_MODULE(AddMemory);

}  // namespace

TEST_CASE("a Transformer runs a custom encoder and decoder, and a clone contains copies of both") {
  const AddOne encoder;
  Transformer model(TransformerOptions(4, 2)
                        .custom_encoder(torch::nn::AnyModule(encoder))
                        .custom_decoder(torch::nn::AnyModule(AddMemory())));
  const auto x = torch::randn({3, 2, 4});
  CHECK(model(x, 2 * x).equal(2 * x + (x + 1)));
  CHECK(model->parameters()[0].is_same(encoder->weight));
  CHECK(encoder->weight.item<float>() != 1);  // drawn, as in Python
  const auto copy = std::dynamic_pointer_cast<TransformerImpl>(model->clone());
  CHECK(copy->parameters()[0].equal(encoder->weight));
  CHECK_FALSE(copy->parameters()[0].is_same(encoder->weight));
  CHECK(copy->forward(x, x).equal(model(x, x)));
}

TEST_CASE("a Transformer clone is independent of the original and computes the same outputs") {
  torch::manual_seed(4);
  const auto options = TransformerOptions(8, 2).num_encoder_layers(1).num_decoder_layers(1);
  Transformer model(TransformerOptions(options).dim_feedforward(6).dropout(0));
  const auto copy = std::dynamic_pointer_cast<TransformerImpl>(model->clone());
  const auto src = torch::randn({5, 3, 8}), tgt = torch::randn({4, 3, 8});
  CHECK(copy->forward(src, tgt).equal(model(src, tgt)));
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : copy->parameters()) parameter.fill_(0);
  CHECK_FALSE(copy->forward(src, tgt).equal(model(src, tgt)));
}

TEST_CASE("as in Python, a Transformer rejects mismatched batch sizes and feature counts") {
  Transformer model(TransformerOptions(8, 2).num_encoder_layers(1).num_decoder_layers(1));
  const std::string who = "sconce::nn::Transformer: expected a src and a tgt with ";
  CHECK_THAT(error_of([&] { model(torch::ones({5, 3, 8}), torch::ones({4, 2, 8})); }),
             ContainsSubstring(who + "the same batch size, got [5, 3, 8] and [4, 2, 8]"));
  CHECK_THAT(error_of([&] { model(torch::ones({5, 3, 8}), torch::ones({4, 3, 6})); }),
             ContainsSubstring(who + "8 features, got [5, 3, 8] and [4, 3, 6]"));
}
