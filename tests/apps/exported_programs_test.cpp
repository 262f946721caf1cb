// Compares the examples that serve programs exported from Python against the same programs run in
// Python.
#include <torch/torch.h>

#include <regex>

#include "apps/run_example.hpp"
#include "catch.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/ask_python.hpp"
#include "support/check_refused.hpp"
#include "support/same_bytes.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::check_refused;
using sconce::test::run_example;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

torch::nn::Sequential small_net() {
  return torch::nn::Sequential(torch::nn::Linear(64, 32), torch::nn::ReLU(),
                               torch::nn::Linear(32, 10), torch::nn::Softmax(1));
}

void save_inputs(const fs::path& file, const torch::Tensor& x) {
  sconce::StateDict state;
  state.insert("x", x);
  sconce::io::save_torch(file, state);
}

torch::Tensor read_tensor(const fs::path& file) {
  return sconce::io::load_torch(file).toTensor();
}

// Exports a network in Python, and runs the exported network on 17 rows, in batches of 8, 8, and 1.
// Returns the outputs computed in C++.
torch::Tensor export_and_serve(const TempDir& folder) {
  torch::manual_seed(0);
  auto net = small_net();
  const auto x = torch::randn({17, 64});
  sconce::io::save_torch(folder.path() / "weights.pt", sconce::nn::state_dict(*net));
  save_inputs(folder.path() / "inputs.pt", x);
  sconce::test::ask_python(folder, "exported_programs.py", "served");
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> outputs;
  for (const auto& batch : x.split(8)) outputs.push_back(net->forward(batch));
  return torch::cat(outputs);
}

}  // namespace

TEST_CASE(
    "a program exported from Python returns the same outputs as in Python and rejects inputs or "
    "machines that do not match the export",
    "[python]") {
  const TempDir temporary;
  const fs::path& folder = temporary.path();
  const auto in_cpp = export_and_serve(temporary);

  for (const std::string kind : {"ts", "pt2"}) {
    const std::string serving = kind == "ts" ? "serving_script" : "serving_package";
    const std::string served = serving + " net." + kind;
    const auto ran = run_example(folder, served + " inputs.pt outputs.pt");
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    CHECK_THAT(ran.out, StartsWith("17 rows\n~ "));
    const auto outputs = read_tensor(folder / "outputs.pt");
    CHECK(sconce::test::same_bytes(outputs, read_tensor(folder / (kind + ".pt"))));
    CHECK((kind == "ts" ? sconce::test::same_bytes(outputs, in_cpp)
                        : outputs.allclose(in_cpp, 1.3e-6, 1e-5)));

    fs::remove(folder / "outputs.pt");
    save_inputs(folder / "wide.pt", torch::randn({8, 65}));
    save_inputs(folder / "double.pt", torch::randn({8, 64}, torch::kDouble));
    const std::string rows = "expected rows of 'torch.float32 torch.Size([64])', got 'torch.";
    check_refused(run_example(folder, served + " wide.pt outputs.pt"), 1,
                  rows + "float32 torch.Size([65])'");
    check_refused(run_example(folder, served + " double.pt outputs.pt"), 1,
                  rows + "float64 torch.Size([64])'");
    sconce::io::save_torch(folder / "unnamed.pt", sconce::StateDict());
    check_refused(run_example(folder, served + " unnamed.pt outputs.pt"), 1,
                  "unnamed.pt: expected rows named 'x'");
    check_refused(run_example(folder, serving + " other_torch." + kind + " inputs.pt outputs.pt"),
                  1, "expected PyTorch '2.0.0', got '" TORCH_VERSION "'");
  }
  check_refused(run_example(folder, "serving_script other_format.ts inputs.pt outputs.pt"), 1,
                "version 999, but the maximum supported version for reading is 10");
  check_refused(run_example(folder, "serving_package other_device.pt2 inputs.pt outputs.pt"), 1,
                "expected the device 'cuda', got 'cpu'");
  check_refused(run_example(folder, "serving_package other_cpu.pt2 inputs.pt outputs.pt"), 1,
                "expected a CPU with 'VSX', got '");
  CHECK_FALSE(fs::exists(folder / "outputs.pt"));
}

TEST_CASE(
    "the examples that serve exported programs reject all other files with a one-line error") {
  const TempDir folder;
  folder.write("text.ts", "no archive");
  folder.write("text.pt2", "no archive");
  save_inputs(folder.path() / "state.pt", torch::zeros({1, 64}));  // a different kind of archive
  for (const std::string command : {"serving_script", "serving_package"}) {
    const std::string ending = command == "serving_script" ? ".ts" : ".pt2";
    check_refused(run_example(folder.path(), command), 2,
                  "usage: " + command + " PROGRAM" + ending);
    for (const auto& file : {"nowhere" + ending, "text" + ending, std::string("state.pt")}) {
      const auto ran = run_example(folder.path(), command + " " + file + " inputs.pt outputs.pt");
      check_refused(ran, 1, "(" + file + ")");
    }
  }
}

namespace {

std::string without_indentation(const std::string& text) {
  return std::regex_replace(text, std::regex("\n +"), "\n");
}

// Returns the source files for the code quoted on the pages: the examples, plus the tests for code
// that is not in any example.
std::string quoted_sources() {
  std::string sources;
  for (const std::string name : {"compiled_step", "exporting"}) {
    const std::string test = SCONCE_TESTS_DIR "/apps/" + name + "_test.cpp";
    sources += "\n" + without_indentation(sconce::test::contents(test));
  }
  for (const auto& entry : fs::directory_iterator(SCONCE_TESTS_DIR "/../apps/examples")) {
    if (!entry.is_regular_file()) continue;  // Python's bytecode cache
    sources += "\n" + without_indentation(sconce::test::contents(entry.path()));
  }
  return sources;
}

}  // namespace

TEST_CASE("every code block on the export and compilation pages appears in an example or a test") {
  const std::string sources = quoted_sources();
  const std::regex block("(<!-- by hand -->\n)?```(?:cpp|python)\n([^`]*)```");
  for (const auto& [name, count] :
       {std::pair("compile_a_step", 2), std::pair("export", 8), std::pair("exported_programs", 6),
        std::pair("serve_a_model", 4)}) {
    const std::string page =
        sconce::test::contents(std::string(SCONCE_TESTS_DIR "/../docs/") + name + ".md");
    int blocks = 0;
    for (std::sregex_iterator found(page.begin(), page.end(), block), end; found != end; ++found) {
      // Skips complete programs, which the package test runs, and blocks that are marked on the
      // page as not built in CI.
      const bool is_program = found->str(2).find("int main(") != std::string::npos;
      if (found->length(1) > 0 || is_program) continue;
      INFO(found->str(2));
      CHECK_THAT(sources, ContainsSubstring(without_indentation("\n" + found->str(2))));
      ++blocks;
    }
    CHECK(blocks == count);
  }
}
