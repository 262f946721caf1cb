#include "sconce/training/lr_scheduling.hpp"

#include <cmath>
#include <filesystem>

#include "catch.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/optim/swa_utils.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/points.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::Checkpoint;
using sconce::LRScheduling;
using sconce::SchedulerInterval;
using sconce::Trainer;
using sconce::test::data;
using sconce::test::net;
namespace lr_scheduler = sconce::optim::lr_scheduler;

TEST_CASE("LRScheduling steps its scheduler after each epoch or after each step") {
  const auto rate_after = [](SchedulerInterval interval, int accumulate) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 1.0);
    lr_scheduler::ExponentialLR scheduler(optimizer, 0.5);
    LRScheduling scheduling(scheduler, interval);
    auto fit = data(96, 16);  // 6 batches
    fit.callbacks = {&scheduling};
    Trainer({.max_epochs = 2, .num_gpus = 0, .accumulate_grad_batches = accumulate})
        .fit(model, optimizer, fit);
    return optimizer.param_groups()[0].options().get_lr();
  };
  CHECK(rate_after(SchedulerInterval::epoch, 1) == std::pow(0.5, 2));
  CHECK(rate_after(SchedulerInterval::step, 1) == std::pow(0.5, 12));
  CHECK(rate_after(SchedulerInterval::step, 4) == std::pow(0.5, 4));
}

TEST_CASE(
    "with CyclicLR, MultiplicativeLR, or SWALR, a fit with graph enabled matches a fit without "
    "it") {
  const int kind = GENERATE(0, 1, 2);
  const auto fitted = [kind](bool graph) {
    auto model = net();
    sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    std::unique_ptr<lr_scheduler::LRScheduler> scheduler;
    if (kind == 0) {
      scheduler = std::make_unique<lr_scheduler::CyclicLR>(
          optimizer, 0.01, 0.2, lr_scheduler::CyclicLROptions{.step_size_up = 4});
    } else if (kind == 1) {
      scheduler = std::make_unique<lr_scheduler::MultiplicativeLR>(
          optimizer, [](int64_t step) { return 1 - 0.01 * static_cast<double>(step); });
    } else {
      scheduler = std::make_unique<sconce::optim::swa_utils::SWALR>(optimizer, 0.01);
    }
    LRScheduling scheduling(*scheduler, SchedulerInterval::step);
    auto fit = data(96, 16);
    fit.callbacks = {&scheduling};
    Trainer({.max_epochs = 2, .num_gpus = 0, .graph = graph}).fit(model, optimizer, fit);
    CHECK(scheduler->last_epoch() == 12);
    return model->parameters();
  };
  const auto plain = fitted(false), captured = fitted(true);
  for (size_t i = 0; i < plain.size(); ++i) CHECK(captured[i].equal(plain[i]));
}

TEST_CASE("a OneCycleLR that would end before the fit is rejected before the first step") {
  const sconce::test::TempDir folder;
  const auto run = [&](int epochs, SchedulerInterval interval, int64_t total_steps) {
    Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    auto model = net();
    sconce::optim::SGD optimizer(model->parameters(), 0.1);
    lr_scheduler::OneCycleLR scheduler(optimizer, 0.1, {.total_steps = total_steps});
    LRScheduling scheduling(scheduler, interval);
    auto with = data();
    with.callbacks = {&saving, &scheduling};
    Trainer trainer({.max_epochs = epochs, .num_gpus = 0, .accumulate_grad_batches = 4});
    return trainer.fit(model, optimizer, with).epochs.size();
  };
  // With four batches accumulated per step, six batches take two steps.
  CHECK_THROWS_WITH(run(3, SchedulerInterval::step, 5),
                    ContainsSubstring("expected a OneCycleLR with at least 6 steps (for 3 epochs), "
                                      "got a schedule with 5"));
  CHECK_THROWS_WITH(run(3, SchedulerInterval::epoch, 2), ContainsSubstring("at least 3 steps"));
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(run(3, SchedulerInterval::step, 6) == 3);
  CHECK(run(3, SchedulerInterval::step, 6) == 3);
  const sconce::test::Warnings of_the_resumed;
  CHECK_THROWS_WITH(
      run(4, SchedulerInterval::step, 8),
      ContainsSubstring("at least 8 steps (for 4 epochs), got a schedule with 6; a scheduler "
                        "restored from a checkpoint keeps the saved number of steps"));
}

TEST_CASE("PlateauScheduling steps ReduceLROnPlateau with the monitored metric") {
  const auto rate_with = [](const std::string& monitor, sconce::optim::MetricMode mode) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 1.0);
    lr_scheduler::ReduceLROnPlateau scheduler(optimizer, {.mode = mode, .patience = 0});
    sconce::PlateauScheduling scheduling(scheduler, monitor);
    auto with = data();
    with.callbacks = {&scheduling};
    const auto result = Trainer({.max_epochs = 4, .num_gpus = 0}).fit(model, optimizer, with);
    lr_scheduler::ReduceLROnPlateau twin(optimizer, {.mode = mode, .patience = 0});
    for (auto& group : optimizer.param_groups()) group.options().set_lr(1.0);
    const auto rates = scheduler.get_last_lr();
    const std::string name = monitor == "val_loss" ? "test_loss" : monitor;
    for (const auto& epoch : result.epochs) twin.step(epoch.at(name));
    CHECK(rates == twin.get_last_lr());
    return rates[0];
  };
  CHECK(rate_with("test_loss", sconce::optim::MetricMode::max) < 1);
  CHECK(rate_with("val_loss", sconce::optim::MetricMode::max) < 1);
  rate_with("loss", sconce::optim::MetricMode::min);
}

TEST_CASE(
    "a warmup schedule and a ReduceLROnPlateau work together, even when resumed from a "
    "checkpoint") {
  const sconce::test::TempDir folder;
  const auto rate_after = [&](int epochs) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 1.0);
    lr_scheduler::LinearLR warm_up(optimizer, {.start_factor = 0.25, .total_iters = 3});
    lr_scheduler::ReduceLROnPlateau plateau(optimizer,
                                            {.factor = 0.5, .patience = 0, .threshold = 1e3});
    sconce::LRScheduling warming(warm_up, SchedulerInterval::step);
    sconce::PlateauScheduling scheduling(plateau);
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    auto with = data();
    with.callbacks = {&warming, &scheduling, &saving};
    Trainer({.max_epochs = epochs, .num_gpus = 0}).fit(model, optimizer, with);
    return plateau.get_last_lr()[0];
  };
  CHECK(rate_after(2) == 0.25);
  CHECK(rate_after(4) == 0.0625);
}

TEST_CASE("PlateauScheduling rejects an unknown monitor before the first step") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 1.0);
  lr_scheduler::ReduceLROnPlateau scheduler(optimizer);
  sconce::PlateauScheduling scheduling(scheduler, "test_nothing");
  auto with = data();
  with.callbacks = {&scheduling};
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0}).fit(model, optimizer, with),
                    StartsWith("sconce::PlateauScheduling: expected monitor to be one of [loss, "
                               "train_acc, test_loss, test_acc], got test_nothing"));
  CHECK(model->parameters()[0].equal(net()->parameters()[0]));
}

TEST_CASE("a ReduceLROnPlateau without a mode uses its metric's direction") {
  const auto fit = [](lr_scheduler::ReduceLROnPlateau& scheduler, torch::optim::SGD& optimizer,
                      torch::nn::Sequential& model, const std::string& monitor) {
    sconce::PlateauScheduling scheduling(scheduler, monitor);
    auto with = data();
    with.callbacks = {&scheduling};
    std::optional<sconce::Metrics> metrics;
    if (monitor == "test_mean") {
      metrics = {{"mean", std::make_shared<sconce::metrics::MeanMetric>()}};
    }
    Trainer({.num_gpus = 0, .metrics = metrics}).fit(model, optimizer, with);
  };
  using sconce::optim::MetricMode;
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 1.0);
  const auto before = model->parameters()[0].detach().clone();
  lr_scheduler::ReduceLROnPlateau scheduler(optimizer);
  CHECK_THROWS_WITH(fit(scheduler, optimizer, model, "test_mean"),
                    StartsWith("sconce::PlateauScheduling: expected an explicit mode"));
  CHECK(model->parameters()[0].equal(before));
  CHECK(scheduler.mode() == MetricMode::min);
  {
    const sconce::test::Warnings warnings;
    fit(scheduler, optimizer, model, "test_acc");
    CHECK(scheduler.mode() == MetricMode::max);
    fit(scheduler, optimizer, model, "test_acc");
    CHECK(warnings.messages().empty());
  }
  const sconce::test::Warnings warnings;
  fit(scheduler, optimizer, model, "test_loss");  // the best accuracy no longer counts
  CHECK(scheduler.mode() == MetricMode::min);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0], ContainsSubstring("restarting with the lowest test_loss"));
  lr_scheduler::ReduceLROnPlateau of_highest(optimizer, {.mode = MetricMode::max});
  fit(of_highest, optimizer, model, "test_loss");
  CHECK(of_highest.mode() == MetricMode::max);
}

TEST_CASE("a ReduceLROnPlateau resumed with the opposite mode resets its best value and warns") {
  using sconce::optim::MetricMode;
  const sconce::test::TempDir folder;
  const auto warnings_of = [&](int epochs, std::optional<MetricMode> mode) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 1.0);
    lr_scheduler::ReduceLROnPlateau scheduler(optimizer, {.mode = mode});
    sconce::PlateauScheduling scheduling(scheduler, "test_acc");
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    auto with = data();
    with.callbacks = {&scheduling, &saving};
    const sconce::test::Warnings warnings;
    Trainer({.max_epochs = epochs, .num_gpus = 0}).fit(model, optimizer, with);
    CHECK(scheduler.mode() == mode.value_or(MetricMode::max));
    return warnings.messages();
  };
  CHECK(warnings_of(1, MetricMode::min).empty());
  const auto messages = warnings_of(2, {});
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], ContainsSubstring("the scheduler's best value is the lowest test_acc; "
                                            "restarting with the highest test_acc"));
  CHECK(warnings_of(3, {}).empty());
}

TEST_CASE("two schedulers with different names are stepped and resumed independently") {
  const sconce::test::TempDir folder;
  const auto steps_after = [&](int epochs) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 1.0);
    lr_scheduler::StepLR of_steps(optimizer, 2), of_epochs(optimizer, 3);
    sconce::LRScheduling by_steps(of_steps, SchedulerInterval::step);
    sconce::LRScheduling by_epochs(of_epochs, SchedulerInterval::epoch, "of_epochs");
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    auto with = data(32, 16);
    with.callbacks = {&by_steps, &by_epochs, &saving};
    Trainer({.max_epochs = epochs, .num_gpus = 0}).fit(model, optimizer, with);
    return std::pair(of_steps.last_epoch(), of_epochs.last_epoch());
  };
  CHECK(steps_after(1) == std::pair<int64_t, int64_t>(2, 1));
  CHECK(steps_after(3) == std::pair<int64_t, int64_t>(6, 3));
}
