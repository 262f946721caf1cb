#include "sconce/nn/layer_norm.hpp"

#include "catch.hpp"
#include "sconce/repr.hpp"

using sconce::nn::LayerNorm;
using sconce::nn::LayerNormOptions;

TEST_CASE("LayerNorm matches LibTorch's LayerNorm with and without a bias") {
  torch::manual_seed(0);
  const auto x = torch::randn({3, 4, 5});
  for (const bool bias : {true, false}) {
    LayerNorm ours(LayerNormOptions({4, 5}).eps(1e-3).bias(bias));
    torch::nn::LayerNorm theirs(torch::nn::LayerNormOptions({4, 5}).eps(1e-3));
    CHECK(ours->parameters().size() == (bias ? 2 : 1));
    CHECK(ours->bias.defined() == bias);
    CHECK(ours(x).equal(theirs(x)));
    const torch::NoGradGuard no_grad;
    const auto weight = torch::randn({4, 5}), shift = torch::randn({4, 5});
    ours->weight.copy_(weight);
    theirs->weight.copy_(weight);
    if (bias) {
      ours->bias.copy_(shift);
      theirs->bias.copy_(shift);
    }
    CHECK(ours(x).equal(theirs(x)));
    const auto copy = std::dynamic_pointer_cast<sconce::nn::LayerNormImpl>(ours->clone());
    CHECK(copy->forward(x).equal(ours(x)));
    copy->weight.zero_();
    CHECK(ours->weight.equal(weight));
  }
}

TEST_CASE(
    "LayerNorm with a single size normalizes the last dimension, even without learnable "
    "parameters") {
  const auto x = torch::randn({3, 4});
  LayerNorm norm(LayerNormOptions(4).elementwise_affine(false));
  CHECK(norm->parameters().empty());
  CHECK(norm(x).equal(torch::layer_norm(x, {4})));
  CHECK_THROWS_WITH(norm(torch::ones({4, 3})),
                    Catch::Matchers::ContainsSubstring("expected input with shape [*, 4]"));
}
