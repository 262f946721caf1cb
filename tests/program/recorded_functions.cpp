// Records functions of tensors, and runs the recorded programs with other batch sizes.
#include <ATen/ops/add.h>

#include "catch.hpp"
#include "program/networks.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/program/record.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using sconce::StateDict;
using sconce::program::Function;
using sconce::program::Program;
using sconce::program::record;
using sconce::program::RecordOptions;
using sconce::program::Tensors;
using sconce::test::error_of;
using sconce::test::TempDir;
using torch::Tensor;
using torch::indexing::Slice;

namespace {

// Records the function with an input of two rows, and checks the program with other row counts.
void check_recorded(const Function& function, std::vector<int64_t> shape,
                    RecordOptions options = {}, const std::vector<int64_t>& rows = {1, 3, 17}) {
  const TempDir folder;
  const auto file = folder.path() / "program.safetensors";
  const auto input = [&](int64_t count) {
    shape[0] = count;
    return torch::randn(shape);
  };
  options.dynamic_shapes.push_back({"x", 0});
  record(file, function, {{"x", input(2)}}, options);
  const auto program = Program::load(file);
  const torch::NoGradGuard no_grad;
  for (const int64_t count : rows) {
    const auto x = input(count);
    const auto outputs = program.run({x});
    const auto expected = function({x});
    REQUIRE(outputs.size() == expected.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      INFO(count << " rows, output " << i);
      CHECK(outputs[i].strides() == expected[i].strides());
      CHECK(outputs[i].allclose(expected[i], 1e-5, 1e-6, /*equal_nan=*/true));
    }
  }
}

void check_recorded(const std::function<Tensor(const Tensor&)>& function,
                    const std::vector<int64_t>& shape, const RecordOptions& options = {}) {
  check_recorded([&](const Tensors& in) { return Tensors{function(in[0])}; }, shape, options);
}

}  // namespace

TEST_CASE("parameters that two layers share are stored once, under both names") {
  const TempDir folder;
  const auto file = folder.path() / "tied.safetensors";
  torch::nn::Linear layer(4, 4);
  torch::nn::Sequential net(layer, torch::nn::ReLU(), layer);
  check_recorded([&](const Tensor& x) { return net->forward(x); }, {2, 4}, {.module = net.ptr()});
  record(file, net, {{"x", torch::randn({2, 4})}});
  CHECK(sconce::io::load_safetensors(file).keys() ==
        std::vector<std::string>{"0.bias", "0.weight"});
  const auto texts = sconce::io::load_safetensors_metadata(file);
  CHECK_THAT(texts.at("sconce.program"),
             Catch::Matchers::ContainsSubstring(R"("name":"2.weight")"));
}

TEST_CASE("parameters that share storage are recorded") {
  torch::nn::Sequential net(torch::nn::Linear(4, 4), torch::nn::ReLU(), torch::nn::Linear(4, 4));
  net->parameters()[2].set_data(net->parameters()[0].data());
  check_recorded([&](const Tensor& x) { return net->forward(x); }, {2, 4}, {.module = net.ptr()});
}

TEST_CASE("a recorded network in channels_last format returns outputs with the original strides") {
  torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3), torch::nn::BatchNorm2d(4),
                            torch::nn::ReLU(), torch::nn::MaxPool2d(2));
  net->eval();
  for (auto& parameter : net->parameters()) {
    if (parameter.dim() == 4)
      parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
  }
  check_recorded(
      [&](const Tensor& x) { return net->forward(x.contiguous(at::MemoryFormat::ChannelsLast)); },
      {2, 3, 8, 8}, {.module = net.ptr()});
}

TEST_CASE("without a module, the tensors that a function uses are recorded as constants") {
  const auto weight = torch::randn({3, 4}), shift = torch::randn({3});
  check_recorded(
      [&](const Tensor& x) {
        const auto scale = torch::tensor({1.F, 2.F, 3.F});
        return torch::linear(x, weight, shift) * scale + torch::arange(3);
      },
      {2, 4});
}

TEST_CASE("in-place operators are recorded along with the views that they write to") {
  check_recorded(
      [](const Tensor& x) {
        auto y = x.clone();
        y.select(1, 0).mul_(2);
        y.slice(1, 2).copy_(x.slice(1, 0, 2)).add_(1);
        at::add_out(y, y, x);
        y.t().relu_();
        return y.index_put_({Slice(), torch::tensor({1})}, x.sum(1, true));
      },
      {2, 4});
}

TEST_CASE("a function that allocates a tensor and then fills it in parts is recorded") {
  check_recorded(
      [](const Tensor& x) {
        auto y = torch::empty({x.size(0), 2 * x.size(1)}, x.options());
        y.slice(1, 0, x.size(1)).copy_(x);
        y.slice(1, x.size(1)).copy_(x.cos());
        auto z = torch::empty_like(y);
        z.zero_().index_put_({Slice(), torch::tensor({0, 2})}, y.slice(1, 0, 2));
        auto buffer = x.new_empty({x.size(0), 1});
        buffer.fill_(2);
        return torch::cat({y, z, buffer}, 1);
      },
      {2, 4});
}

TEST_CASE(
    "integers that depend on the batch size are recorded as multilinear polynomials of the dynamic "
    "sizes") {
  check_recorded(
      [](const Tensor& x) {
        const auto rows = x.size(0);
        const auto positions = torch::arange(1, 3 * rows + 1).view({rows, 3}).to(torch::kFloat);
        return positions * x / (3 * rows + 1) + torch::full({rows, 1}, rows) +
               torch::linspace(0, 1, rows).unsqueeze(1);
      },
      {2, 3});
  const auto square = [](const Tensor& x) { return torch::arange(x.size(0) * x.size(0)); };
  CHECK_THAT(
      error_of([&] { check_recorded(square, {2, 3}); }),
      Catch::Matchers::ContainsSubstring(
          "calls[0] aten::arange: argument 'end' at batch = 7: expected a multilinear polynomial"));
}

TEST_CASE(
    "take_along_dim is recorded as gather, because torch.export makes take_along_dim's sizes "
    "constant") {
  const TempDir folder;
  const auto file = folder.path() / "program.safetensors";
  const auto take = [](const Tensors& in) {
    return Tensors{torch::take_along_dim(in[0], in[0].argsort(1, false).slice(1, 0, 1), 1)};
  };
  check_recorded(take, {2, 4});
  record(file, take, {{"x", torch::randn({2, 4})}}, {.dynamic_shapes = {{"x", 0}}});
  const auto text = sconce::io::load_safetensors_metadata(file).at("sconce.program");
  CHECK_THAT(text, !Catch::Matchers::ContainsSubstring("take_along_dim"));
}

TEST_CASE(
    "a recorded function can return an input, a weight, or a view, and can return the same tensor "
    "more than once") {
  torch::nn::Linear net(4, 4);
  check_recorded(
      [&](const Tensors& in) {
        const auto y = net->forward(in[0]);
        return Tensors{in[0], net->weight.detach(), y.data(), y.t(), y, in[0].narrow(0, 0, 1)};
      },
      {2, 4}, {.module = net.ptr()});
}

TEST_CASE("functions that use dtypes other than float32 are recorded") {
  check_recorded(
      [](const Tensors& in) {
        const auto& x = in[0];
        const auto half = x.to(torch::kHalf) * 2.5;
        const auto complex = torch::complex(x, x.neg()).conj() * c10::complex<double>(0, 2);
        const auto whole = x.to(torch::kLong).bitwise_and(3).remainder(2);
        return Tensors{half.to(torch::kFloat), torch::view_as_real(complex.resolve_conj()),
                       whole.eq(1).to(torch::kInt).cumsum(1).to(torch::kDouble),
                       torch::where(x > 0, x, -INFINITY)};
      },
      {2, 4});
}

TEST_CASE(
    "LibTorch's attention is recorded if its inputs are the same tensor and rejected otherwise") {
  torch::nn::MultiheadAttention net(4, 2);
  net->eval();
  const RecordOptions options{.module = net.ptr()};
  check_recorded(
      [&](const Tensor& x) {
        const auto turned = x.transpose(0, 1);
        return std::get<0>(net->forward(turned, turned, turned));
      },
      {2, 3, 4}, options);
  const auto error = error_of([&] {
    check_recorded([&](const Tensor& x) { return std::get<0>(net->forward(x, x, x.relu())); },
                   {2, 3, 4}, options);
  });
  CHECK_THAT(error, Catch::Matchers::ContainsSubstring("use sconce::nn attention instead"));
}

TEST_CASE("a recorded GPT works with any batch size and sequence length") {
  sconce::test::Gpt net;
  net->eval();
  const TempDir folder;
  const auto file = folder.path() / "gpt.safetensors";
  const auto tokens = torch::randint(40, {3, 24});  // as long as the table of positions
  record(file, net, {{"tokens", tokens}},
         {.dynamic_shapes = {{"tokens", 0}, {"tokens", 1, "length"}}});
  const auto program = Program::load(file);
  const torch::NoGradGuard no_grad;
  for (const int64_t rows : {1, 3, 17}) {
    for (const int64_t length : {1, 2, 24}) {
      const auto x = torch::randint(40, {rows, length});
      CHECK(program.run({x})[0].allclose(net->forward(x), 1e-5, 1e-5));
    }
  }
  CHECK_THAT(error_of([&] { program.run({torch::randint(40, {2, 2, 2})}); }),
             Catch::Matchers::ContainsSubstring("expected the shape (batch, length)"));
}

TEST_CASE("casts that autocast performs within an operator are recorded") {
  torch::nn::Bilinear net(4, 4, 3);
  check_recorded(
      [&](const Tensor& x) {
        const sconce::amp::AutocastGuard autocast(torch::kCPU);
        return net->forward(x, x.tanh());
      },
      {2, 4}, {.module = net.ptr()});
}

TEST_CASE(
    "record rejects a function that fails at sizes other than the example's, and the error reports "
    "those sizes") {
  const auto error = error_of(
      [] { check_recorded([](const Tensor& x) { return x + torch::ones({2, 4}); }, {2, 4}); });
  CHECK_THAT(error, Catch::Matchers::ContainsSubstring("but at batch = 3 it throws: The size of "));
}

TEST_CASE(
    "record rejects an output whose size is not a multilinear polynomial of the dynamic sizes") {
  const auto error = error_of(
      [] { check_recorded([](const Tensor& x) { return torch::max_pool1d(x.t(), 2); }, {2, 4}); });
  CHECK_THAT(error, Catch::Matchers::ContainsSubstring(
                        "output 'output': expected sizes that are multilinear polynomials"));
}
