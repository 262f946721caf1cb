#include "sconce/training/early_stopping.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/points.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::EarlyStopping;
using sconce::Trainer;
using sconce::optim::MetricMode;
using sconce::test::data;
using sconce::test::net;

namespace {

// Gives a fit such values of "loss", whatever it came to.
struct Losses : sconce::TrainerCallback {
  explicit Losses(std::vector<double> given) : values(std::move(given)) {}
  void on_epoch_end(sconce::Fit& fit) override {
    fit.epochs.back().loss = values.at(fit.epochs.size() - 1);
  }
  std::vector<double> values;
};

// How many epochs a fit of at most as many takes.
size_t epochs_of(const std::vector<double>& values, const sconce::EarlyStoppingOptions& options) {
  Losses losses(values);
  EarlyStopping stopping("loss", options);
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto with = data(16, 16);
  with.test.reset();
  with.callbacks = {&losses, &stopping};
  const auto result = Trainer({.max_epochs = static_cast<int>(values.size()), .num_gpus = 0})
                          .fit(model, optimizer, with);
  CHECK(result.stopped == (result.epochs.size() < values.size()));
  return result.epochs.size();
}

}  // namespace

TEST_CASE("a fit stops after `patience` epochs in a row without a better value") {
  CHECK(epochs_of({3, 2, 2, 2, 2, 1}, {}) == 5);
  CHECK(epochs_of({3, 2, 2, 2, 1, 1}, {}) == 6);
  CHECK(epochs_of({3, 4, 2, 3, 1, 5}, {.patience = 1}) == 2);
  CHECK(epochs_of({3, 2.9, 2.8, 2.7}, {.min_delta = 0.15, .patience = 1}) == 2);
  CHECK(epochs_of({1, 2, 3, 2, 1}, {.patience = 1, .mode = MetricMode::max}) == 4);
  CHECK(epochs_of({2, 2, 2}, {.patience = 0}) == 2);
  CHECK(epochs_of({2, 1, 0}, {.patience = 0}) == 3);
}

TEST_CASE("a fit whose metric is not finite stops") {
  CHECK(epochs_of({3, std::nan(""), 1, 1}, {}) == 2);
  CHECK(epochs_of({std::numeric_limits<double>::infinity(), 1, 1}, {}) == 1);
}

TEST_CASE("early stopping refuses options and names that cannot be") {
  CHECK_THROWS_WITH(EarlyStopping("loss", {.min_delta = -1}), ContainsSubstring("min_delta"));
  CHECK_THROWS_WITH(EarlyStopping("loss", {.min_delta = std::nan("")}),
                    ContainsSubstring("min_delta"));
  CHECK_THROWS_WITH(EarlyStopping("loss", {.patience = -1}), ContainsSubstring("patience"));
}

TEST_CASE("early stopping by a name that no value has is refused before any work") {
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
  fit("loss", false);  // a checkpoint that a refused fit must not load
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

TEST_CASE("a new fit with an early stopping that has stopped one starts afresh") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Losses losses({2, 2, 2, 2, 2, 1});
  EarlyStopping stopping("loss", {.patience = 2});
  auto with = data(16, 16);
  with.callbacks = {&losses, &stopping};
  Trainer trainer({.max_epochs = 6, .num_gpus = 0});
  CHECK(trainer.fit(model, optimizer, with).epochs.size() == 3);
  CHECK(trainer.fit(model, optimizer, with).epochs.size() == 3);
  losses.values = {9, 8, 7, 6, 5, 4};  // worse than the first fit's best, and getting better
  CHECK(trainer.fit(model, optimizer, with).epochs.size() == 6);
}

TEST_CASE("a state that is loaded counts for the next fit, and for no other") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Losses losses({3, 3, 3, 3, 3, 3});
  EarlyStopping first("loss", {.patience = 4}), stopping("loss", {.patience = 4});
  auto with = data(16, 16);
  with.callbacks = {&losses, &first};
  Trainer trainer({.max_epochs = 3, .num_gpus = 0});
  trainer.fit(model, optimizer, with);  // waits for two epochs
  stopping.load_state_dict(first.state_dict());
  with.callbacks = {&losses, &stopping};
  Trainer longer({.max_epochs = 6, .num_gpus = 0});
  CHECK(longer.fit(model, optimizer, with).epochs.size() == 2);
  CHECK(longer.fit(model, optimizer, with).epochs.size() == 5);
}

TEST_CASE("a state of another metric or mode begins anew") {
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
    CHECK(epochs_with(stopping) == 4);
  }
}

TEST_CASE(
    "a fit that stopped early stays so when it is resumed, and one that waits goes on waiting") {
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
  CHECK_FALSE(run(3, 2).stopped);  // one of three
  CHECK(run(3, 6).epochs.size() == 4);
  const auto again = run(3, 6);
  CHECK(again.stopped);
  CHECK(again.epochs.size() == 4);
  CHECK_FALSE(run(3, 4).stopped);  // as the fit of four epochs, which was to stop in its last
}
