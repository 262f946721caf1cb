// Tests the examples that record and serve a network, as well as the statements about recording in
// docs/export.md.
#include <torch/torch.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "apps/run_example.hpp"
#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/program/program.hpp"
#include "sconce/program/record.hpp"
#include "support/check_refused.hpp"
#include "support/same_bytes.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::program::Program;
using sconce::program::record;
using sconce::program::Tensors;
using sconce::test::check_refused;
using sconce::test::run_example;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE(
    "a network recorded by one example program returns the same outputs when served by another") {
  const TempDir temporary;
  const fs::path& folder = temporary.path();
  const auto recorded = run_example(folder, "exporting digits.safetensors inputs.pt");
  INFO(recorded.err);
  REQUIRE(recorded.exit_code == 0);
  CHECK_THAT(recorded.out, StartsWith("loss 0."));

  const std::string serving = "serving_recorded digits.safetensors ";
  const auto served = run_example(folder, serving + "inputs.pt outputs.pt");
  INFO(served.err);
  REQUIRE(served.exit_code == 0);
  CHECK_THAT(served.out, StartsWith("x: torch.float32 torch.Size([-1, 64])\n360 rows\n~ "));
  const auto outputs = sconce::io::load_torch(folder / "outputs.pt").toTensor();
  const auto file = sconce::io::load_safetensors(folder / "digits.safetensors");
  REQUIRE(outputs.sizes() == torch::IntArrayRef({360, 10}));
  CHECK(sconce::test::same_bytes(outputs.slice(0, 0, 8), file["example.outputs.logits"]));

  sconce::io::save_torch(folder / "wide.pt", sconce::StateDict{{"x", torch::zeros({8, 65})}});
  check_refused(run_example(folder, "serving_recorded inputs.pt inputs.pt outputs.pt"), 1,
                "serving_recorded: sconce::");
  const auto refused = run_example(folder, serving + "wide.pt outputs.pt");
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, ContainsSubstring("input 'x': expected the shape (batch, 64), got "
                                            "torch.Size([8, 65])"));
  check_refused(run_example(folder, "exporting"), 2, "usage: exporting PROGRAM");
  check_refused(run_example(folder, "serving_recorded"), 2, "usage: serving_recorded PROGRAM");
}

TEST_CASE("the documented program with two dynamic sizes accepts any value for each size") {
  const TempDir folder;
  const auto file = folder.path() / "net.safetensors";
  torch::nn::Sequential net(torch::nn::Embedding(40, 8), torch::nn::Linear(8, 3));
  net->eval();
  record(file, net, {{"tokens", torch::ones({2, 12}, torch::kLong)}},
         {.dynamic_shapes = {{"tokens", 0, "batch"}, {"tokens", 1, "length"}}});
  const torch::NoGradGuard no_grad;
  const auto program = Program::load(file);
  for (const auto& tokens : {torch::randint(40, {5, 7}), torch::randint(40, {1, 30})}) {
    CHECK(torch::allclose(program.run({tokens})[0], net->forward(tokens)));
  }
}

TEST_CASE("the documented call to record names the outputs and keeps the weight names") {
  const TempDir folder;
  const auto file = folder.path() / "net.safetensors";
  torch::nn::Linear net(64, 10);
  const auto pixels = torch::randint(17, {4, 64}).to(torch::kByte);
  const auto classify = [&](const Tensors& inputs) {
    const auto logits = net->forward(inputs[0].to(torch::kFloat) / 16);
    return Tensors{logits.softmax(1), logits.argmax(1)};
  };
  record(file, classify, {{"pixels", pixels}},
         {.dynamic_shapes = {{"pixels", 0}},
          .output_names = {"probabilities", "classes"},
          .module = net.ptr()});
  const torch::NoGradGuard no_grad;
  const auto program = Program::load(file);
  const auto outputs = program.run({pixels}), expected = classify({pixels});
  CHECK(torch::allclose(outputs[0], expected[0]));
  CHECK(torch::equal(outputs[1], expected[1]));
  CHECK(program.inputs()[0].dtype == torch::kByte);
  CHECK(program.outputs()[1].name == "classes");
  CHECK(sconce::io::load_safetensors(file).contains("weight"));
}

TEST_CASE("the documented program recorded under autocast contains the casts") {
  const TempDir folder;
  const auto file = folder.path() / "net.safetensors";
  torch::nn::Linear net(64, 10);
  const auto x = torch::randn({4, 64});
  const auto in_bf16 = [&](const Tensors& inputs) {
    const sconce::amp::AutocastGuard autocast(torch::kCPU);  // in bfloat16
    return Tensors{net->forward(inputs[0]).to(torch::kFloat)};
  };
  record(file, in_bf16, {{"x", x}}, {.dynamic_shapes = {{"x", 0}}});
  const torch::NoGradGuard no_grad;
  const auto output = Program::load(file).run({x})[0];
  CHECK(torch::equal(output, in_bf16({x})[0]));
  CHECK_FALSE(torch::equal(output, net->forward(x)));
}

TEST_CASE("docs/recorded_programs.md shows the metadata that record writes") {
  const TempDir folder;
  torch::nn::Linear net(8, 2);
  torch::nn::init::ones_(net->weight);
  torch::nn::init::zeros_(net->bias);
  record(folder.path() / "net.safetensors",
         [&](const Tensors& in) { return Tensors{torch::linear(in[0], net->weight, net->bias)}; },
         {{"x", torch::randn({4, 8})}}, {.dynamic_shapes = {{"x", 0}}, .module = net.ptr()});
  const auto texts = sconce::io::load_safetensors_metadata(folder.path() / "net.safetensors");
  auto written = nlohmann::json::parse(texts.at("sconce.program"));
  CHECK(written["torch"] == TORCH_VERSION);

  const std::string text = sconce::test::contents(SCONCE_TESTS_DIR "/../docs/recorded_programs.md");
  std::smatch block;
  REQUIRE(std::regex_search(text, block, std::regex("```json\n([^`]*)```")));
  const auto shown = nlohmann::json::parse(block.str(1));
  written["torch"] = shown["torch"];  // written by an older LibTorch
  CHECK(shown == written);
}
