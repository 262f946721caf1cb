// Tests the compiled-step example and the lines that docs/compile_a_step.md quotes from it.
#include <torch/torch.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "apps/run_example.hpp"
#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/program/inductor.hpp"
#include "sconce/training/epoch_logger.hpp"
#include "sconce/training/trainer.hpp"
#include "support/check_refused.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using sconce::test::check_refused;
using sconce::test::contents;
using sconce::test::run_example;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

// Returns the output line that reports which variant of the step was kept.
std::string form_line(const std::string& out) {
  return out.substr(out.rfind('\n', out.size() - 2) + 1);
}

double last_loss(const std::string& out) {
  return std::stod(out.substr(out.rfind("loss ") + 5));
}

}  // namespace

TEST_CASE(
    "the compiled-step example times both step variants once, and later runs reuse the chosen "
    "variant",
    "[python]") {
  const TempDir folder;
  const auto first = run_example(folder.path(), "compiled_step steps");
  INFO(first.out << first.err);
  REQUIRE(first.exit_code == 0);
  CHECK(first.err.empty());
  CHECK_THAT(first.out, Matches("(epoch [1-5]: loss [0-9.]+\n){5}(compiled|replayed): a compiled "
                                "step takes [0-9]+ us, a replay [0-9]+ us\n"));
  CHECK(last_loss(first.out) < 0.2);

  const auto second = run_example(folder.path(), "compiled_step steps");
  INFO(second.out << second.err);
  REQUIRE(second.exit_code == 0);
  CHECK(second.err.empty());
  const auto form = form_line(first.out).substr(0, 8);
  CHECK(form_line(second.out) == form + ": an earlier run kept this variant\n");
  CHECK(last_loss(second.out) == Catch::Approx(last_loss(first.out)).margin(0.01));
}

TEST_CASE(
    "the compiled-step example rejects unknown options and a cache folder that is writable by "
    "other users") {
  const TempDir folder;
  check_refused(run_example(folder.path(), "compiled_step --help"), 2, "usage: compiled_step");
  check_refused(run_example(folder.path(), "compiled_step one two"), 2, "usage: compiled_step");
  CHECK(fs::is_empty(folder.path()));
  fs::create_directory(folder.path() / "shared");
  fs::permissions(folder.path() / "shared", fs::perms::all);
  check_refused(run_example(folder.path(), "compiled_step shared"), 1, "chmod go-w '");
}

TEST_CASE(
    "the documented fit example replays its steps and, if it cannot compile them, reports the "
    "reason") {
  const TempDir folder;
  const auto compiler = sconce::program::inductor(
      {.wait = true, .cache_dir = folder.path() / "steps", .python = "/no/python"});
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::GELU(), torch::nn::Linear(8, 2));
  sconce::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  const sconce::data::Batches batches(
      {torch::randn({12, 4}), torch::randint(2, {12}, torch::kLong)}, {.batch_size = 2});
  std::ostringstream out;
  sconce::EpochLogger lines(out);
  const sconce::test::Warnings warnings;
  sconce::Trainer trainer({.max_epochs = 5, .num_gpus = 0, .compiler = compiler});
  trainer.fit(net, sgd, {.train = batches, .callbacks = {&lines}});
  CHECK_THAT(out.str(), ContainsSubstring("the step is not compiled, because "));
  CHECK_THAT(out.str(), ContainsSubstring("expected Python at /no/python, found none\n"));
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0], ContainsSubstring("expected Python at /no/python"));
}
