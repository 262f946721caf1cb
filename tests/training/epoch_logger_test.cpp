#include "sconce/training/epoch_logger.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include "catch.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/fitting.hpp"
#include "support/points.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using sconce::EpochLogger;
using sconce::Trainer;
using sconce::data::Batches;
using sconce::test::data;
using sconce::test::Fitting;
using sconce::test::points;

TEST_CASE("EpochLogger prints one line per epoch and the speed at the end") {
  std::ostringstream log;
  EpochLogger lines(log);
  Fitting<>({&lines}).fit({.max_epochs = 2});
  using Catch::Matchers::Matches;
  CHECK_THAT(
      log.str(),
      Matches("epoch 1/2: loss \\d\\.\\d{3}, train acc [01]\\.\\d{3}, test acc [01]\\.\\d{3}\n"
              "epoch 2/2: loss \\d\\.\\d{3}, train acc [01]\\.\\d{3}, test acc [01]\\.\\d{3}\n"
              "\\d+\\.\\d examples/sec on cpu\n"));
}

TEST_CASE("EpochLogger reports that a resumed fit has nothing left to train") {
  const sconce::test::TempDir folder;
  std::string last;
  for (const bool again : {false, true}) {
    std::ostringstream log;
    EpochLogger lines(log);
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    Fitting<>({&lines, &saving}).fit({.max_epochs = 2});
    if (!again) {
      last = log.str().substr(log.str().find("epoch 2/2: ") + 11);
      last = last.substr(0, last.find('\n') + 1);
    } else {
      CHECK(log.str() == "all 2 epochs are already trained: " + last);
    }
  }
}

TEST_CASE("a nan loss is reported without a sign, even if its sign bit is set") {
  for (const double sign : {1., -1.}) {
    std::ostringstream log;
    auto nans = points(8);
    nans.data.fill_(std::copysign(std::numeric_limits<double>::quiet_NaN(), sign));
    EpochLogger lines(log);
    const auto result = Fitting<>({&lines}, {.train = Batches(nans, {.batch_size = 4})}).fit();
    CHECK(std::isnan(result.epochs[0].loss));
    CHECK_FALSE(std::signbit(result.epochs[0].loss));
    CHECK_THAT(log.str(), ContainsSubstring("loss nan") && !ContainsSubstring("-nan"));
  }
  CHECK(std::isnan(sconce::FitResult{}.examples_per_second()));
  CHECK_FALSE(std::signbit(sconce::FitResult{}.examples_per_second()));
}

TEST_CASE("EpochLogger prints no test accuracy without test data") {
  std::ostringstream log;
  EpochLogger lines(log);
  const auto result = Fitting<>({&lines}, {.train = Batches(points(8), {.batch_size = 4})}).fit();
  CHECK_FALSE(result.epochs[0].contains("test_acc"));
  CHECK_THAT(log.str(), !ContainsSubstring("test acc"));
}

TEST_CASE("EpochLogger prints the test loss of a model without metrics") {
  std::ostringstream log;
  EpochLogger lines(log);
  torch::nn::Linear model(2, 2);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto with = data();
  with.callbacks = {&lines};
  Trainer({.num_gpus = 0, .metrics = sconce::Metrics{}}).fit(model, optimizer, with);
  CHECK_THAT(log.str(), Matches("epoch 1/1: loss \\d\\.\\d{3}, test loss \\d\\.\\d{3}\n[^]*"));
}

TEST_CASE("EpochLogger's last line reports where and why a callback stopped the fit") {
  struct Stops : sconce::TrainerCallback {
    void on_after_optimizer_step(sconce::Fit& fit) override {
      if (fit.batch == batch && std::ssize(fit.epochs) == 1) fit.stop(reason);
    }
    int64_t batch = 0;
    std::string reason = {};
  } stops;
  const auto last_line = [&] {
    std::ostringstream log;
    EpochLogger lines(log);
    const auto result = Fitting<>({&lines, &stops}).fit({.max_epochs = 3});
    CHECK(result.stop_reason == stops.reason);
    const std::string text = log.str();
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  };
  stops.batch = 4;
  CHECK(last_line() == "stopped in epoch 2/3 after batch 4/6\n");
  stops.reason = "the disk is full";
  CHECK(last_line() == "stopped in epoch 2/3 after batch 4/6: the disk is full\n");
  stops.batch = 6;
  CHECK(last_line() == "stopped after epoch 2/3: the disk is full\n");
}
