#include "sconce/vision/models/resnet.hpp"

#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/nn/memory_format.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/repr.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using sconce::vision::models::ResNet;
using sconce::vision::models::resnet18;
using sconce::vision::models::resnet34;
using sconce::vision::models::resnet50;
using sconce::vision::models::ResNetBlock;
using sconce::vision::models::ResNetOptions;

struct Line {
  std::string what;
  std::vector<double> values;
};

// The lines of reference/resnet.txt about a network.
std::vector<Line> lines_of(const std::string& network) {
  std::ifstream file(std::filesystem::path(SCONCE_TESTS_DIR) / "reference/resnet.txt");
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    std::string name, value;
    Line line;
    words >> name >> line.what;
    while (words >> value) line.values.push_back(std::stod(value));
    if (name == network) lines.push_back(std::move(line));
  }
  REQUIRE(!lines.empty());
  return lines;
}

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

// Other processors add up in another order.
void check_close(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK_THAT(got[i], WithinAbs(expected[i], 1e-4 * std::max(1.0, std::abs(expected[i]))));
  }
}

std::vector<double> values_of(const torch::Tensor& tensor) {
  const auto flat = tensor.detach().to(torch::kDouble).flatten().contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

std::vector<double> losses_of(ResNet net, const torch::Tensor& x) {
  net->train();
  torch::optim::SGD sgd(net->parameters(), 0.001);
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    const auto loss = torch::nn::functional::cross_entropy(net(x), torch::arange(4));
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

TEST_CASE("a ResNet has torchvision's state from the same seed, its logits and its losses") {
  const std::string network = GENERATE("resnet18", "resnet34", "resnet50", "dilated");
  CAPTURE(network);
  const auto lines = lines_of(network);
  auto net = make(network);
  const auto state = sconce::nn::state_dict(*net);
  REQUIRE(state.size() + 3 == lines.size());
  auto line = lines.begin();
  for (const auto& item : state) {
    const auto& [name, tensor] = item.pair();
    CAPTURE(name);
    REQUIRE(line->what == name);
    std::vector<double> expected(tensor.sizes().begin(), tensor.sizes().end());
    expected.push_back(tensor.to(torch::kDouble).sum().item<double>());
    check_close(expected, line->values);
    ++line;
  }
  const auto x = torch::randn({4, 3, 64, 64});
  for (const auto format : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
    const torch::NoGradGuard no_grad;
    sconce::nn::to_memory_format(*net, format);
    net->eval();
    check_close(values_of(net(x.contiguous(format))), (line++)->values);
  }
  sconce::nn::to_memory_format(*net, torch::MemoryFormat::Contiguous);
  check_close(losses_of(net, x), line->values);
}

TEST_CASE("a ResNet prints like torchvision's") {
  const auto text = sconce::repr(resnet18({.num_classes = 5}));
  CHECK(text.starts_with("ResNet(\n  (conv1): Conv2d(3, 64, kernel_size=(7, 7), stride=(2, 2), "));
  CHECK_THAT(text, ContainsSubstring("  (layer1): Sequential(\n    (0): BasicBlock(\n"));
  CHECK_THAT(text,
             ContainsSubstring("(fc): Linear(in_features=512, out_features=5, bias=True)\n)"));
}

TEST_CASE("the last layer of a ResNet can be replaced, and a clone returns the same") {
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

TEST_CASE("a ResNet refuses what torchvision refuses, by name") {
  CHECK_THROWS_WITH(resnet18({.num_classes = 0}),
                    ContainsSubstring("expected num_classes of at least 1, got 0"));
  CHECK_THROWS_WITH(resnet50({.groups = 0}),
                    ContainsSubstring("expected groups of at least 1, got 0"));
  CHECK_THROWS_WITH(resnet50({.width_per_group = 0}),
                    ContainsSubstring("expected width_per_group of at least 1, got 0"));
  CHECK_THROWS_WITH(resnet18({.groups = 2}),
                    ContainsSubstring("groups 1 and width_per_group 64 of basic blocks, got 2"));
  CHECK_THROWS_WITH(resnet34({.replace_stride_with_dilation = {true, false, false}}),
                    ContainsSubstring("basic blocks without dilation"));
  CHECK_THROWS_WITH(ResNet(ResNetBlock::basic, std::array<int64_t, 4>{1, 0, 1, 1}),
                    ContainsSubstring("at least 1 block in each layer, got [1, 0, 1, 1]"));
}

}  // namespace
