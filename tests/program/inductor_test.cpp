#include "sconce/program/inductor.hpp"

#include <torch/version.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/seed_everything.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::CapturedStep;
using sconce::KeptStep;
using sconce::StepMode;
using sconce::program::inductor;
using sconce::program::InductorOptions;
using sconce::test::error_of;
using sconce::test::TempDir;
using Tensors = std::vector<torch::Tensor>;
namespace nn = torch::nn;

namespace {

// Contains a network, its optimizer, and a batch. The network has dropout, running statistics, and
// an LSTM whose biases receive equal gradients. The optimizer divides each gradient by the loss
// scale.
struct Training {
  Training() {
    sconce::seed_everything(0);
    net = nn::Sequential(nn::Linear(8, 16), nn::BatchNorm1d(16), nn::GELU(), nn::Dropout(0.25),
                         nn::Linear(16, 4));
    lstm = nn::LSTM(8, 8);
    auto parameters = net->parameters();
    const auto of_lstm = lstm->parameters();
    parameters.insert(parameters.end(), of_lstm.begin(), of_lstm.end());
    optimizer = std::make_unique<sconce::optim::Adam>(parameters);
    batch = {torch::randn({12, 8}), torch::arange(12).remainder(4)};
  }

  Tensors step(const Tensors& of) {
    optimizer->zero_grad();
    auto hidden = of[0];
    // Inductor in LibTorch 2.11 does not compile LSTMs, so steps with an LSTM are replayed.
    if (TORCH_VERSION_MINOR >= 15) {
      hidden = std::get<0>(lstm->forward(hidden.unsqueeze(0))).squeeze(0);
    }
    auto logits = net->forward(hidden);
    // For a noncontiguous tensor, dropout draws its random numbers in memory order. In LibTorch
    // 2.11, Inductor assigns these random numbers in a different order, so steps with dropout on a
    // noncontiguous tensor are replayed instead of compiled.
    if (TORCH_VERSION_MINOR >= 15) {
      logits = torch::dropout(logits.t(), 0.25, net->is_training()).t();
    }
    auto loss = nn::functional::cross_entropy(logits, of[1]);
    scaler.scale(loss).backward();
    scaler.step(*optimizer);
    scaler.update();
    return {loss};
  }

  nn::Sequential net = nullptr;
  nn::LSTM lstm = nullptr;
  sconce::amp::GradScaler scaler{{.device = torch::kCPU}};
  std::unique_ptr<sconce::optim::Adam> optimizer = {};
  Tensors batch = {};
};

// Calls a step several times and compares the losses with the eager loop's losses.
struct CapturedTraining {
  explicit CapturedTraining(InductorOptions options)
      : captured(torch::kCPU, [this](const Tensors& batch) { return training.step(batch); },
                 {.modules = {training.net.ptr()}, .compiler = inductor(std::move(options))}) {}

  void run(int calls) {
    std::vector<double> expected, found;
    sconce::seed_everything(1);
    for (int i = 0; i < calls; ++i) {
      found.push_back(captured(training.batch)[0].item<double>());
    }
    sconce::seed_everything(1);
    for (int i = 0; i < calls; ++i) expected.push_back(plain.step(plain.batch)[0].item<double>());
    for (int i = 0; i < calls; ++i) {
      INFO("call " << i);
      CHECK(found[static_cast<size_t>(i)] ==
            Catch::Approx(expected[static_cast<size_t>(i)]).epsilon(1e-5));
    }
  }

  Training plain = {};
  Training training = {};
  CapturedStep captured;
};

}  // namespace

TEST_CASE(
    "training with a compiled step matches the eager loop, and later runs load the step from an "
    "intact cache",
    "[python]") {
  const TempDir folder;
  const auto temporary_files = folder.path() / "temporary";
  std::filesystem::create_directory(temporary_files);
  ::setenv("TMPDIR", temporary_files.c_str(), 1);  // the case has its own process
  {
    CapturedTraining first({.wait = true, .cache_dir = folder.path() / "steps"});
    first.run(40);
    CHECK_THAT(first.captured.mode_reason(), ContainsSubstring("a compiled step takes"));
  }
  CHECK(std::filesystem::is_empty(temporary_files));  // others could write there
  CapturedTraining second(
      {.wait = true, .cache_dir = folder.path() / "steps", .python = "/no/python"});
  second.run(10);
  CHECK(second.captured.mode_reason() == "an earlier run kept this variant");
  CapturedTraining third(
      {.keep = KeptStep::compiled, .cache_dir = folder.path() / "steps", .python = "/no/python"});
  third.run(10);
  CHECK(third.captured.mode() == StepMode::compiled);
  CHECK(third.captured.mode_reason() == "compiled steps are kept");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "steps")) {
    if (entry.path().filename() != "package.pt2") continue;
    std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  }
  const sconce::test::Warnings warnings;
  CapturedTraining fourth(
      {.wait = true, .cache_dir = folder.path() / "steps", .python = "/no/python"});
  fourth.run(6);
  REQUIRE(warnings.messages().size() == 2);
  CHECK_THAT(warnings.messages()[0], ContainsSubstring("recompiling a package in the cache: ") &&
                                         ContainsSubstring("the file is damaged"));
}

TEST_CASE("if Python is missing or fails, the step is replayed with a warning") {
  const TempDir folder;
  const std::vector<std::pair<std::filesystem::path, std::string>> pythons = {
      {"/no/python", "sconce::program::inductor: expected Python at /no/python, found none"},
      {"/bin/false", "sconce::program::inductor: exit code 1"}};
  for (const auto& [python, reason] : pythons) {
    const sconce::test::Warnings warnings;
    CapturedTraining training(
        {.wait = true, .cache_dir = folder.path() / "steps", .python = python});
    training.run(8);
    CHECK(training.captured.mode() == StepMode::replayed);
    CHECK(training.captured.mode_reason() == reason);
    REQUIRE(warnings.messages().size() == 1);
    CHECK_THAT(warnings.messages()[0], ContainsSubstring(reason));
  }
}

TEST_CASE("a step is replayed while the compiler runs") {
  const TempDir folder;
  const auto python = folder.write("python", "#!/bin/sh\nexec sleep 1000\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  CapturedTraining training({.cache_dir = folder.path() / "steps", .python = python});
  training.run(30);
  CHECK(training.captured.mode() == StepMode::replayed);
  CHECK(training.captured.mode_reason() == "the compiler has not finished");
}

TEST_CASE("a compiler rejects a cache that other users can write to") {
  const TempDir folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  CHECK_THROWS_WITH(inductor({.cache_dir = folder.path()}),
                    ContainsSubstring(folder.path().string()) && ContainsSubstring("chmod"));
}
