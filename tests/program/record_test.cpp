#include "sconce/program/record.hpp"

#include "catch.hpp"
#include "program/networks.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/program/program.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using sconce::StateDict;
using sconce::program::Program;
using sconce::program::record;
using sconce::program::Tensors;
using sconce::test::TempDir;

TEST_CASE(
    "a recorded network matches the original network at batch sizes that differ from the "
    "example's") {
  const TempDir folder;
  for (const auto& network : sconce::test::networks()) {
    INFO(network.name);
    const auto file = folder.path() / (network.name + ".safetensors");
    record(file, network.forward, network.example(2), network.options());
    const auto program = Program::load(file);
    const torch::NoGradGuard no_grad;
    for (const int64_t rows : {1, 3, 17}) {
      const auto inputs = network.example(rows).values();
      const auto outputs = program.run(inputs);
      const auto expected = network.forward(inputs);
      REQUIRE(outputs.size() == expected.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        INFO(rows << " rows, output " << i);
        CHECK(outputs[i].sizes() == expected[i].sizes());
        CHECK((outputs[i] - expected[i]).abs().max().item<double>() <= 1e-5);
      }
    }
  }
}

TEST_CASE("a lazy layer must be initialized before it is recorded") {
  const TempDir folder;
  torch::nn::Sequential net(sconce::nn::LazyLinear(4), torch::nn::ReLU());
  const auto file = folder.path() / "net.safetensors";
  const StateDict example = {{"x", torch::randn({2, 3})}};
  CHECK_THAT(sconce::test::error_of([&] { record(file, net, example); }),
             Catch::Matchers::ContainsSubstring("run lazy layers once before"));
  record(file, net, example);
  CHECK(torch::equal(Program::load(file).run({example["x"]})[0], net->forward(example["x"])));
}

TEST_CASE(
    "a program accepts a single row unless the recorded function treats a single row differently") {
  const TempDir folder;
  const auto file = folder.path() / "program.safetensors";
  const StateDict example = {{"x", torch::randn({3, 4})}};
  const auto squeeze = [](const Tensors& in) { return Tensors{in[0].squeeze()}; };
  record(file, squeeze, example, {.dynamic_shapes = {{"x", 0}}});
  CHECK(Program::load(file).run({torch::randn({1, 4})})[0].sizes() == torch::IntArrayRef{4});
  const auto branch = [](const Tensors& in) {
    return Tensors{in[0].size(0) == 1 ? in[0] * 2 : in[0] * 3};
  };
  record(file, branch, example, {.dynamic_shapes = {{"x", 0}}});
  CHECK_THAT(sconce::test::error_of([&] { Program::load(file).run({torch::randn({1, 4})}); }),
             Catch::Matchers::ContainsSubstring("expected batch to be at least 2, got 1"));
}

TEST_CASE("record accepts modules, module holders, and pointers to modules in place of functions") {
  const TempDir folder;
  const auto file = folder.path() / "net.safetensors";
  torch::nn::Linear net(3, 2);
  const auto x = torch::randn({4, 3});
  const torch::NoGradGuard no_grad;
  const auto check = [&] {
    CHECK(torch::equal(Program::load(file).run({x})[0], net->forward(x)));
    CHECK(sconce::io::load_safetensors(file).contains("weight"));
    std::filesystem::remove(file);
  };
  record(file, net, {{"x", x}});
  check();
  record(file, *net, {{"x", x}});
  check();
  const auto pointer = net.ptr();
  record(file, pointer, {{"x", x}});
  check();
  record(file, [&](const Tensors& in) { return Tensors{net->forward(in[0])}; }, {{"x", x}},
         {.module = pointer});
  check();
}
