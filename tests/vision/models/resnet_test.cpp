#include "sconce/vision/models/resnet.hpp"

#include <array>
#include <memory>
#include <string>

#include "catch.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/repr.hpp"
#include "support/like_torchvision.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using sconce::vision::models::ResNet;
using sconce::vision::models::resnet18;
using sconce::vision::models::resnet34;
using sconce::vision::models::resnet50;
using sconce::vision::models::ResNetBlock;
using sconce::vision::models::ResNetOptions;

ResNet make(const std::string& network) {
  torch::manual_seed(0);
  if (network == "resnet18") return resnet18({.num_classes = 5});
  if (network == "resnet34") return resnet34({.num_classes = 5});
  if (network == "resnet50") return resnet50({.num_classes = 5});
  return ResNet(ResNetBlock::bottleneck, std::array<int64_t, 4>{1, 1, 2, 1},
                ResNetOptions{.num_classes = 5,
                              .zero_init_residual = true,
                              .groups = 2,
                              .width_per_group = 32,
                              .replace_stride_with_dilation = {false, true, true}});
}

TEST_CASE("a ResNet matches torchvision's initial state, losses, and logits for the same seed") {
  const std::string network = GENERATE("resnet18", "resnet50", "dilated");
  CAPTURE(network);
  sconce::test::check_like_torchvision(network, make(network), /*size=*/64);
}

TEST_CASE("resnet34 matches torchvision's initial state") {
  sconce::test::check_state(*make("resnet34"), sconce::test::lines_of_network("resnet34"));
}

TEST_CASE("a ResNet prints the same text as torchvision's ResNet") {
  const auto text = sconce::repr(resnet18({.num_classes = 5}));
  CHECK(text.starts_with("ResNet(\n  (conv1): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), "));
  CHECK_THAT(text, ContainsSubstring("  (layer1): Sequential(\n    (0): BasicBlock(\n"));
  CHECK_THAT(text,
             ContainsSubstring("(fc): Linear(in_features=512, out_features=5, bias=True)\n)"));
}

TEST_CASE("the last layer of a ResNet can be replaced, and a clone returns the same outputs") {
  auto net = resnet18();
  net->fc = net->replace_module("fc", torch::nn::Linear(512, 3));
  net->eval();
  const auto x = torch::randn({2, 3, 32, 32});
  CHECK(net(x).sizes() == torch::IntArrayRef{2, 3});
  auto other = resnet18({.num_classes = 3});
  other->eval();
  sconce::nn::load_state_dict(*other, sconce::nn::state_dict(*net));
  CHECK(other(x).equal(net(x)));
  const auto clone = std::dynamic_pointer_cast<ResNet::Impl>(other->clone());
  CHECK(clone->forward(x).equal(net(x)));
}

TEST_CASE("a ResNet rejects the same options as torchvision, and the error names the options") {
  CHECK_THROWS_WITH(resnet18({.num_classes = 0}),
                    ContainsSubstring("expected num_classes to be at least 1, got 0"));
  CHECK_THROWS_WITH(resnet50({.groups = 0}),
                    ContainsSubstring("expected groups to be at least 1, got 0"));
  CHECK_THROWS_WITH(resnet50({.width_per_group = 0}),
                    ContainsSubstring("expected width_per_group to be at least 1, got 0"));
  CHECK_THROWS_WITH(resnet18({.groups = 2}),
                    ContainsSubstring("groups 1 and width_per_group 64 for basic blocks, got 2"));
  CHECK_THROWS_WITH(resnet34({.replace_stride_with_dilation = {true, false, false}}),
                    ContainsSubstring("basic blocks without dilation"));
  CHECK_THROWS_WITH(ResNet(ResNetBlock::basic, std::array<int64_t, 4>{1, 0, 1, 1}),
                    ContainsSubstring("at least 1 block in each layer, got [1, 0, 1, 1]"));
}

}  // namespace
