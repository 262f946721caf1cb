#include "sconce/training/early_stopping.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/fitting.hpp"
#include "support/points.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::EarlyStopping;
using sconce::Trainer;
using sconce::optim::MetricMode;
using sconce::test::data;
using sconce::test::Fitting;
using sconce::test::net;

namespace {

// Sets the values of "loss" in a fit, regardless of what the fit computed.
struct Losses : sconce::TrainerCallback {
  explicit Losses(std::vector<double> given) : values(std::move(given)) {}
  void on_epoch_end(sconce::Fit& fit) override {
    fit.epochs.back().loss = values.at(fit.epochs.size() - 1);
  }
  std::vector<double> values;
};

// Returns the number of epochs that a fit runs, which is at most the number of values.
size_t epochs_of(const std::vector<double>& values, const sconce::EarlyStoppingOptions& options) {
  Losses losses(values);
  EarlyStopping stopping("loss", options);
  const auto result = Fitting<>({&losses, &stopping}, {.train = data(16, 16).train})
                          .fit({.max_epochs = static_cast<int>(values.size())});
  CHECK(result.stopped == (result.epochs.size() < values.size()));
  return result.epochs.size();
}

}  // namespace

TEST_CASE("EarlyStopping stops a fit after `patience` consecutive epochs without improvement") {
  CHECK(epochs_of({3, 2, 2, 2, 2, 1}, {}) == 5);
  CHECK(epochs_of({3, 2, 2, 2, 1, 1}, {}) == 6);
  CHECK(epochs_of({3, 4, 2, 3, 1, 5}, {.patience = 1}) == 2);
  CHECK(epochs_of({3, 2.9, 2.8, 2.7}, {.min_delta = 0.15, .patience = 1}) == 2);
  CHECK(epochs_of({1, 2, 3, 2, 1}, {.patience = 1, .mode = MetricMode::max}) == 4);
  CHECK(epochs_of({2, 2, 2}, {.patience = 0}) == 2);
  CHECK(epochs_of({2, 1, 0}, {.patience = 0}) == 3);
}

TEST_CASE("EarlyStopping stops a fit whose metric is not finite") {
  CHECK(epochs_of({3, std::nan(""), 1, 1}, {}) == 2);
  CHECK(epochs_of({std::numeric_limits<double>::infinity(), 1, 1}, {}) == 1);
}

TEST_CASE("EarlyStopping rejects invalid options") {
  CHECK_THROWS_WITH(EarlyStopping("loss", {.min_delta = -1}), ContainsSubstring("min_delta"));
  CHECK_THROWS_WITH(EarlyStopping("loss", {.min_delta = std::nan("")}),
                    ContainsSubstring("min_delta"));
  CHECK_THROWS_WITH(EarlyStopping("loss", {.patience = -1}), ContainsSubstring("patience"));
}

TEST_CASE("EarlyStopping rejects an unknown monitor before any work is done") {
  const sconce::test::TempDir folder;
  sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
  sconce::ModelCheckpoint saving(checkpoint);
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), 0.1);
  const auto matrix = std::make_shared<sconce::metrics::ConfusionMatrix>(
      sconce::metrics::ConfusionMatrixOptions{.num_classes = 2});
  const sconce::Metrics metrics = {{"acc", std::make_shared<sconce::metrics::Accuracy>()},
                                   {"matrix", matrix}};
  const auto fit = [&](const std::string& monitor, bool has_test) {
    EarlyStopping stopping(monitor);
    auto with = data();
    if (!has_test) with.test.reset();
    with.callbacks = {&saving, &stopping};
    return Trainer({.num_gpus = 0, .metrics = metrics}).fit(model, optimizer, with).epochs.size();
  };
  fit("loss", false);  // a rejected fit must not load this checkpoint
  const auto weight = model->parameters()[0].detach().clone();
  model->parameters()[0].detach().add_(1);
  const std::string expected = "sconce::EarlyStopping: expected monitor to be one of ";
  CHECK_THROWS_WITH(fit("test_nothing", true),
                    StartsWith(expected + "[loss, train_acc, test_loss, test_acc], got "
                                          "test_nothing"));
  CHECK_THROWS_WITH(fit("train_matrix", true), ContainsSubstring("got train_matrix"));
  CHECK_THROWS_WITH(fit("test_loss", false),
                    StartsWith(expected + "[loss, train_acc], got test_loss"));
  CHECK(model->parameters()[0].equal(weight + 1));
  CHECK(fit("test_acc", true) == 1);
  CHECK(fit("val_acc", true) == 1);
  CHECK_THROWS_WITH(fit("val_loss", false),
                    StartsWith(expected + "[loss, train_acc], got val_loss"));
}

TEST_CASE("EarlyStopping and PlateauScheduling look up the given monitor again in each fit") {
  Fitting<sconce::optim::SGD> f;
  sconce::optim::lr_scheduler::ReduceLROnPlateau scheduler(f.optimizer);
  EarlyStopping stopping("val_loss");
  sconce::PlateauScheduling scheduling(scheduler, "val_loss");
  const sconce::Callbacks all[] = {{&stopping}, {&scheduling}};
  for (const auto& callbacks : all) {
    f.with = data(16, 16);
    f.with.callbacks = callbacks;
    f.fit();
    f.with.test.reset();
    CHECK_THROWS_WITH(f.fit(), ContainsSubstring("got val_loss"));
  }
}

TEST_CASE("a new fit resets an EarlyStopping that has already stopped a fit") {
  Losses losses({2, 2, 2, 2, 2, 1});
  EarlyStopping stopping("loss", {.patience = 2});
  Fitting<> f({&losses, &stopping}, data(16, 16));
  CHECK(f.fit({.max_epochs = 6}).epochs.size() == 3);
  CHECK(f.fit({.max_epochs = 6}).epochs.size() == 3);
  losses.values = {9, 8, 7, 6, 5, 4};  // worse than the first fit's best, but improving
  CHECK(f.fit({.max_epochs = 6}).epochs.size() == 6);
}

TEST_CASE("a state loaded into EarlyStopping applies only to the next fit") {
  Losses losses({3, 3, 3, 3, 3, 3});
  EarlyStopping first("loss", {.patience = 4}), stopping("loss", {.patience = 4});
  Fitting<> f({&losses, &first}, data(16, 16));
  f.fit({.max_epochs = 3});  // has waited for two epochs
  stopping.load_state_dict(first.state_dict());
  f.with.callbacks = {&losses, &stopping};
  CHECK(f.fit({.max_epochs = 6}).epochs.size() == 2);
  CHECK(f.fit({.max_epochs = 6}).epochs.size() == 5);
}

TEST_CASE(
    "EarlyStopping warns and restarts if its loaded state belongs to a different metric or mode") {
  using sconce::optim::MetricMode;
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Losses losses({4, 3, 2, 1.5});  // no accuracy is as high
  auto with = data(16, 16);
  const auto epochs_with = [&](EarlyStopping& stopping) {
    with.callbacks = {&losses, &stopping};
    return Trainer({.max_epochs = 4, .num_gpus = 0}).fit(model, optimizer, with).epochs.size();
  };
  EarlyStopping of_accuracy("test_acc", {.patience = 9, .mode = MetricMode::max});
  EarlyStopping of_highest("loss", {.patience = 9, .mode = MetricMode::max});
  for (EarlyStopping* other : {&of_accuracy, &of_highest}) {
    CHECK(epochs_with(*other) == 4);
    EarlyStopping stopping("loss", {.patience = 1});
    stopping.load_state_dict(other->state_dict());
    const sconce::test::Warnings warnings;
    CHECK(epochs_with(stopping) == 4);
    REQUIRE(warnings.messages().size() == 1);
    CHECK_THAT(
        warnings.messages()[0],
        ContainsSubstring(other == &of_highest ? "is the highest loss" : "highest test_acc") &&
            ContainsSubstring("restarting with the lowest loss"));
  }
}

namespace {

// Sets the values of "test_acc" in a fit.
struct Accuracies : sconce::TrainerCallback {
  void on_epoch_end(sconce::Fit& fit) override {
    sconce::MetricValues values;
    for (const auto& [name, value] : fit.epochs.back().metrics) {
      const double index = static_cast<double>(fit.epochs.size());
      values.insert(name, name == "test_acc" ? 0.1 * index : value);
    }
    fit.epochs.back().metrics = values;
  }
};

// A metric that does not declare whether lower or higher values are better.
struct Undirected : sconce::metrics::Metric {
  Undirected() : Metric(1) {}
  void update(const torch::Tensor& preds, const torch::Tensor&) override {
    add(preds.mean().reshape({1}));
  }
  torch::Tensor compute(const torch::Tensor& sums) const override { return sums.sum(); }
  using Metric::compute;
};

}  // namespace

TEST_CASE("EarlyStopping without a mode uses its metric's direction") {
  Accuracies rising;
  EarlyStopping stopping("test_acc", {.patience = 1});
  const auto result = Fitting<>({&rising, &stopping}, data(16, 16)).fit({.max_epochs = 4});
  CHECK_FALSE(result.stopped);
  CHECK(result.stop_reason.empty());
}

TEST_CASE(
    "without a mode, EarlyStopping throws before the first step if the monitored value's direction "
    "is unknown") {
  const auto fit = [](const std::string& monitor, std::optional<MetricMode> mode) {
    auto model = net();
    const auto before = model->parameters()[0].detach().clone();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    EarlyStopping stopping(monitor, {.mode = mode});
    auto with = data(16, 16);
    with.callbacks = {&stopping};
    const sconce::Metrics metrics = {{"mean", std::make_shared<Undirected>()},
                                     {"own_loss", std::make_shared<Undirected>()}};
    try {
      Trainer({.num_gpus = 0, .metrics = metrics}).fit(model, optimizer, with);
    } catch (...) {
      CHECK(model->parameters()[0].equal(before));
      throw;
    }
  };
  CHECK_THROWS_WITH(
      fit("test_mean", {}),
      StartsWith("sconce::EarlyStopping: expected an explicit mode (min or max) for "
                 "test_mean (it is unknown whether lower or higher is better), got none"));
  CHECK_NOTHROW(fit("test_mean", MetricMode::max));
  CHECK_NOTHROW(fit("test_own_loss", {}));  // a loss, judging by its name
}

TEST_CASE("a fit's result reports why EarlyStopping ended the fit, even after resuming") {
  const sconce::test::TempDir folder;
  const auto reason_of = [&](std::vector<double> values, bool saves = false) {
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    Losses losses(std::move(values));
    EarlyStopping stopping("loss", {.patience = 2});
    Fitting<sconce::optim::SGD> f({&losses, &stopping}, data(16, 16));
    if (saves) f.with.callbacks.push_back(&saving);
    return f.fit({.max_epochs = 9}).stop_reason;
  };
  const std::string expected = "loss has not improved for 2 epochs; the lowest was 1.5";
  CHECK(reason_of({2, 1.5, 3, 3}, true) == expected);
  CHECK(reason_of({}, true) == expected);
  CHECK(reason_of({2, std::nan("")}) == "loss is not finite: nan");
}

TEST_CASE("two EarlyStopping callbacks with different names keep separate states") {
  const sconce::test::TempDir folder;
  const auto run = [&](int max_epochs) {
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    Losses losses({2, 2, 2, 2, 2, 2});
    EarlyStopping patient("loss", {.patience = 9}), other("loss", {.patience = 3, .name = "other"});
    const sconce::Callbacks callbacks = {&losses, &patient, &other, &saving};
    return Fitting<sconce::optim::SGD>(callbacks, data(16, 16)).fit({.max_epochs = max_epochs});
  };
  CHECK_FALSE(run(2).stopped);
  CHECK(run(6).epochs.size() == 4);
}

TEST_CASE(
    "a fit that stopped early stays stopped when resumed, and an unfinished fit resumes its "
    "patience count") {
  const sconce::test::TempDir folder;
  const auto run = [&](int patience, int max_epochs) {
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    Losses losses({2, 2, 2, 2, 2, 2});
    EarlyStopping stopping("loss", {.patience = patience});
    auto model = net();
    sconce::optim::SGD optimizer(model->parameters(), 0.1);
    auto with = data(16, 16);
    with.callbacks = {&losses, &stopping, &saving};
    return Trainer({.max_epochs = max_epochs, .num_gpus = 0}).fit(model, optimizer, with);
  };
  CHECK_FALSE(run(3, 2).stopped);  // has waited for one epoch of three
  CHECK(run(3, 6).epochs.size() == 4);
  const auto again = run(3, 6);
  CHECK(again.stopped);
  CHECK(again.epochs.size() == 4);
  CHECK_FALSE(run(3, 4).stopped);  // like a four-epoch fit, which would stop in its last epoch
}
