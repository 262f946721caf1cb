#include "sconce/vision/models/vision_transformer.hpp"

#include <torch/nn/modules/linear.h>

#include <memory>
#include <string>

#include "catch.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/repr.hpp"
#include "support/like_torchvision.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using sconce::vision::models::VisionTransformer;
using sconce::vision::models::VisionTransformerOptions;
using sconce::vision::models::vit_b_16;

VisionTransformerOptions small() {
  return {.image_size = 24,
          .patch_size = 8,
          .num_layers = 2,
          .num_heads = 3,
          .hidden_dim = 24,
          .mlp_dim = 32,
          .dropout = 0.25,
          .attention_dropout = 0.125,
          .num_classes = 5,
          .representation_size = 12};
}

TEST_CASE(
    "a VisionTransformer matches torchvision's initial state, losses, and logits for the same "
    "seed") {
  torch::manual_seed(0);
  SECTION("ViT-B/16") {
    const auto net = vit_b_16({.image_size = 32, .num_classes = 5});
    sconce::test::check_like_torchvision("vit_b_16", net, /*size=*/32);
  }
  SECTION("with a representation and dropouts") {
    sconce::test::check_like_torchvision("represented", VisionTransformer(small()), /*size=*/24);
  }
}

TEST_CASE(
    "a VisionTransformer prints the same text as torchvision's VisionTransformer, and a clone "
    "returns the same outputs") {
  VisionTransformer net(small());
  const auto text = sconce::repr(net);
  CHECK(text.starts_with("VisionTransformer(\n  (conv_proj): Conv2d(3, 24, kernel_size=(8, 8), "));
  CHECK_THAT(text, ContainsSubstring("      (encoder_layer_0): EncoderBlock(\n        (ln_1): "));
  net->eval();
  const auto x = torch::randn({2, 3, 24, 24});
  const auto clone = std::dynamic_pointer_cast<VisionTransformer::Impl>(net->clone());
  CHECK(clone->forward(x).equal(net(x)));
}

TEST_CASE(
    "a VisionTransformer rejects invalid options and images, and the error reports the reason") {
  const auto made_with = [](auto change) {
    auto options = small();
    change(options);
    return VisionTransformer(options);
  };
  CHECK_THROWS_WITH(made_with([](auto& of) { of.num_layers = 0; }),
                    ContainsSubstring("expected num_layers to be at least 1, got 0"));
  CHECK_THROWS_WITH(made_with([](auto& of) { of.representation_size = 0; }),
                    ContainsSubstring("expected representation_size to be at least 1, got 0"));
  CHECK_THROWS_WITH(made_with([](auto& of) { of.patch_size = 7; }),
                    ContainsSubstring("expected patch_size to divide image_size 24, got 7"));
  CHECK_THROWS_WITH(made_with([](auto& of) { of.num_heads = 5; }),
                    ContainsSubstring("expected num_heads to divide hidden_dim 24, got 5"));
  CHECK_THROWS_WITH(made_with([](auto& of) { of.dropout = 1.5; }),
                    ContainsSubstring("expected a dropout between 0 and 1, got 1.5"));
  CHECK_THROWS_WITH(
      vit_b_16({.num_layers = 3}),
      ContainsSubstring("vit_b_16: expected the ViT-B/16 sizes, got different sizes"));
  VisionTransformer net(small());
  CHECK_THROWS_WITH(net(torch::zeros({2, 3, 24, 32})),
                    ContainsSubstring("images of shape [N, 3, 24, 24], got [2, 3, 24, 32]"));
}

}  // namespace
