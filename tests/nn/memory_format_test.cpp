#include "sconce/nn/memory_format.hpp"

#include <torch/torch.h>

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/optim/adam.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::nn::to_memory_format;
using sconce::test::error_of;
using torch::MemoryFormat;

namespace {

torch::nn::Sequential small_cnn() {
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)),
                               torch::nn::BatchNorm2d(4), torch::nn::ReLU(),
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 3, 3).padding(1)),
                               torch::nn::Flatten(), torch::nn::Linear(48, 2));
}

}  // namespace

TEST_CASE("ChannelsLast changes only the strides of 4-dimensional parameters, not their values") {
  auto net = small_cnn();
  const auto before = net->parameters();
  std::vector<torch::Tensor> values;
  for (const auto& parameter : before) values.push_back(parameter.detach().clone());
  const auto x = torch::randn({2, 1, 4, 4});
  net->forward(x).sum().backward();
  const auto grad = before[4].grad().clone();

  to_memory_format(*net, MemoryFormat::ChannelsLast);
  const auto after = net->parameters();
  for (size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i].is_same(before[i]));
    CHECK(after[i].equal(values[i]));
  }
  CHECK(after[0].strides().vec() == std::vector<int64_t>{9, 1, 3, 1});  // as in Python
  CHECK(after[4].strides().vec() == std::vector<int64_t>{36, 1, 12, 4});
  CHECK(after[4].grad().strides() == after[4].strides());
  CHECK(after[4].grad().equal(grad));
  CHECK(after[6].is_contiguous());
  CHECK(after[4].requires_grad());

  to_memory_format(*net, MemoryFormat::Contiguous);
  CHECK(after[4].strides().vec() == std::vector<int64_t>{36, 9, 3, 1});
}

TEST_CASE("ChannelsLast does not change what a model computes or learns") {
  torch::manual_seed(0);
  auto plain = small_cnn();
  torch::manual_seed(0);
  auto last = small_cnn();
  sconce::optim::Adam a(plain->parameters(), 0.01);
  sconce::optim::Adam b(last->parameters(), 0.01);
  const auto x = torch::randn({8, 1, 4, 4});
  for (int step = 0; step < 3; ++step) {
    if (step == 1) to_memory_format(*last, MemoryFormat::ChannelsLast);
    for (auto [net, optimizer] : {std::pair(&plain, &a), std::pair(&last, &b)}) {
      optimizer->zero_grad();
      (*net)->forward(x).square().mean().backward();
      optimizer->step();
    }
  }
  CHECK(torch::allclose(plain->forward(x), last->forward(x), 1e-4, 1e-4));
}

TEST_CASE(
    "ChannelsLast3d changes the strides of 5-dimensional parameters, but ChannelsLast does not") {
  torch::nn::Conv3d net(2, 3, 2);
  to_memory_format(*net, MemoryFormat::ChannelsLast);
  CHECK(net->weight.is_contiguous());
  to_memory_format(*net, MemoryFormat::ChannelsLast3d);
  CHECK(net->weight.is_contiguous(MemoryFormat::ChannelsLast3d));
  CHECK_FALSE(net->weight.is_contiguous());
}

TEST_CASE("to_memory_format rejects MemoryFormat::Preserve") {
  torch::nn::Linear net(1, 1);
  CHECK_THAT(error_of([&] { to_memory_format(*net, MemoryFormat::Preserve); }),
             StartsWith("sconce::nn::to_memory_format: expected Contiguous, ChannelsLast, or"));
}

TEST_CASE("to_memory_format rejects an uninitialized lazy layer") {
  torch::nn::Sequential net(torch::nn::ReLU(), sconce::nn::LazyConv2d(4, 3));
  CHECK_THAT(error_of([&] { to_memory_format(*net, MemoryFormat::ChannelsLast); }),
             StartsWith("sconce::nn::to_memory_format: ") && ContainsSubstring("uninitialized"));
  net->forward(torch::ones({1, 2, 5, 5}));
  to_memory_format(*net, MemoryFormat::ChannelsLast);
  CHECK(net->parameters()[0].is_contiguous(MemoryFormat::ChannelsLast));
}
