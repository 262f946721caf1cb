#include "sconce/report/training_curve.hpp"

#include <cmath>

#include "catch.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/host_reads.hpp"
#include "support/points.hpp"
#include "support/svg.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::EpochMetrics;
using sconce::Trainer;
using sconce::TrainingCurve;
using sconce::test::contents;
using sconce::test::svg_problem;
using sconce::test::TempDir;

namespace {

std::vector<std::string> labels_of(const sconce::LineChart& chart) {
  std::vector<std::string> labels;
  for (const auto& panel : chart.panels) {
    labels.push_back(panel.y_label + ":");
    for (const auto& series : panel.series) labels.back() += " " + series.name;
  }
  return labels;
}

// Runs a fit that halves the learning rate after each epoch. The curve callback runs after the
// scheduler callback, or before it if `is_first` is set. If a checkpoint exists, the fit resumes
// from it.
sconce::FitResult fit(sconce::TrainerCallback& curve, int epochs,
                      const std::filesystem::path& saved = {}, bool is_first = false) {
  auto model = sconce::test::net();
  sconce::optim::SGD optimizer(model->parameters(), 0.4);
  sconce::optim::lr_scheduler::StepLR schedule(optimizer, 1, 0.5);
  sconce::LRScheduling scheduling(schedule);
  auto data = sconce::test::data();
  data.callbacks = {&scheduling, &curve};
  if (is_first) std::swap(data.callbacks[0], data.callbacks[1]);
  std::optional<sconce::Checkpoint> checkpoint;
  std::optional<sconce::ModelCheckpoint> saving;
  if (!saved.empty()) {
    checkpoint.emplace(saved, sconce::CheckpointOptions{.resume = true});
    data.callbacks.push_back(&saving.emplace(*checkpoint));
  }
  return Trainer({.max_epochs = epochs, .num_gpus = 0}).fit(model, optimizer, data);
}

}  // namespace

TEST_CASE("a training run's chart has a panel for the loss and a panel for each metric") {
  const sconce::TrainingHistory history{
      .epochs = {{.epoch = 1, .loss = 2, .metrics = {{"train_acc", 0.5}, {"test_loss", 3}}},
                 {.epoch = 2,
                  .loss = 1,
                  .metrics = {{"train_acc", 0.6}, {"test_loss", 2}, {"test_acc", 0.7}, {"f1", 0}}}},
      .learning_rates = {0.1, 0.05},
      .scales = {65536}};
  const auto chart = sconce::training_chart(history, "My run");
  CHECK(labels_of(chart) == std::vector<std::string>{"loss: train test", "acc: train test",
                                                     "f1: f1", "learning rate: learning rate",
                                                     "scale: scale"});
  CHECK(chart.title == "My run");
  CHECK(chart.panels[1].series[1].x == std::vector<double>{2});  // test_acc began in epoch 2
  CHECK(chart.panels[1].series[1].y == std::vector<double>{0.7});
  CHECK(chart.panels[3].series[0].y == std::vector<double>{0.1, 0.05});
  CHECK(svg_problem(chart.svg()) == "");
}

TEST_CASE("a training run's chart has a series for each named test set") {
  const auto chart = sconce::training_chart({.epochs = {{.epoch = 1,
                                                         .loss = 2,
                                                         .metrics = {{"train_acc", 0.5},
                                                                     {"train_kl", 1},
                                                                     {"val_loss", 3},
                                                                     {"val_acc", 0},
                                                                     {"val_kl", 0},
                                                                     {"very_hard_loss", 3},
                                                                     {"very_hard_acc", 0}}}}});
  CHECK(labels_of(chart) == std::vector<std::string>{"loss: train val very_hard",
                                                     "acc: train val very_hard", "kl: train val"});
}

TEST_CASE(
    "a training chart omits panels for unknown learning rates and scales and can be drawn before "
    "the first epoch") {
  const auto chart = sconce::training_chart({.scales = {std::nan(""), std::nan("")}});
  CHECK(labels_of(chart) == std::vector<std::string>{"loss: train"});
  CHECK(svg_problem(chart.svg()) == "");
}

TEST_CASE("TrainingCurve draws its chart after each epoch") {
  const TempDir folder;
  const auto file = folder.path() / "training.svg";
  struct Watch : sconce::TrainerCallback {
    explicit Watch(std::filesystem::path f) : file(std::move(f)) {}
    void on_epoch_end(sconce::Fit&) override { drawn.push_back(contents(file)); }
    std::filesystem::path file;
    std::vector<std::string> drawn = {};
  } watch(file);
  TrainingCurve curve(file, "Points");
  auto model = sconce::test::net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto data = sconce::test::data();
  data.callbacks = {&curve, &watch};
  Trainer({.max_epochs = 2, .num_gpus = 0}).fit(model, optimizer, data);
  REQUIRE(watch.drawn.size() == 2);
  CHECK(watch.drawn[0] != watch.drawn[1]);
  for (const auto& svg : watch.drawn) {
    CHECK(svg_problem(svg) == "");
    CHECK_THAT(svg, ContainsSubstring(">Points</text>") && ContainsSubstring(">acc</text>") &&
                        ContainsSubstring(">learning rate</text>") &&
                        !ContainsSubstring(">scale</text>"));
  }
  CHECK(sconce::test::names_in(folder.path()) == std::vector<std::string>{"training.svg"});
}

TEST_CASE(
    "the training curve shows the learning rate used in each epoch's steps, regardless of callback "
    "order") {
  const TempDir folder;
  for (const bool is_first : {false, true}) {
    TrainingCurve curve(folder.path() / "training.svg");
    fit(curve, 3, {}, is_first);
    CHECK(curve.history().learning_rates == std::vector<double>{0.4, 0.2, 0.1});
  }
}

TEST_CASE("the training curve shows an enabled GradScaler's scale") {
  const TempDir folder;
  TrainingCurve curve(folder.path() / "training.svg");
  auto model = sconce::test::net();
  sconce::optim::SGD optimizer(model->parameters(), 0.1);
  auto data = sconce::test::data();
  data.callbacks = {&curve};
  Trainer({.max_epochs = 2, .num_gpus = 0, .precision = sconce::amp::Precision::fp16})
      .fit(model, optimizer, data);
  const auto& scales = curve.history().scales;
  REQUIRE(scales.size() == 2);
  CHECK(scales[0] >= 1);
  CHECK_THAT(contents(folder.path() / "training.svg"), ContainsSubstring(">scale</text>"));
}

TEST_CASE(
    "a resumed fit's chart includes earlier epochs, even if the earlier run did not draw a chart") {
  const TempDir folder;
  const auto saved = folder.path() / "run";
  {
    sconce::TrainerCallback none;
    fit(none, 2, saved);
  }
  TrainingCurve curve(folder.path() / "training.svg");
  CHECK(fit(curve, 4, saved).epochs.size() == 4);
  const auto& rates = curve.history().learning_rates;
  REQUIRE(rates.size() == 4);
  CHECK(std::isnan(rates[0]));
  CHECK(std::isnan(rates[1]));
  CHECK(rates[2] == 0.1);
  CHECK(rates[3] == 0.05);
  CHECK_THAT(contents(folder.path() / "training.svg"), ContainsSubstring(">4</text>"));
  TrainingCurve again(folder.path() / "again.svg");  // for a fit that has already ended
  fit(again, 4, saved);
  CHECK(again.history().epochs.size() == 4);
  CHECK(svg_problem(contents(folder.path() / "again.svg")) == "");
}

TEST_CASE("a second fit restarts the training curve") {
  const TempDir folder;
  TrainingCurve curve(folder.path() / "training.svg");
  fit(curve, 3);
  fit(curve, 2);
  CHECK(curve.history().learning_rates == std::vector<double>{0.4, 0.2});
  CHECK(curve.history().epochs.size() == 2);
}

TEST_CASE("if the training curve cannot be written, the fit warns once and continues") {
  const TempDir folder;
  const auto file = folder.write("file", "") / "training.svg";  // the parent is a file
  const sconce::test::Warnings warnings;
  TrainingCurve curve(file);
  CHECK(fit(curve, 3).epochs.size() == 3);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages().front(),
             ContainsSubstring("sconce::TrainingCurve: ") && ContainsSubstring(file.string()));
}

TEST_CASE("the training curve adds no host reads to a step") {
  const auto reads = [](sconce::Callbacks callbacks) {
    auto model = sconce::test::net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    auto data = sconce::test::data();
    data.callbacks = std::move(callbacks);
    const sconce::test::HostReads counted;
    Trainer({.max_epochs = 2, .num_gpus = 0}).fit(model, optimizer, data);
    return counted.count();
  };
  const TempDir folder;
  TrainingCurve curve(folder.path() / "training.svg");
  CHECK(reads({&curve}) == reads({}));
}
