#include "sconce/report/training_curve.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/optim/adadelta.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/report/lr_find.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
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

// Fits for a number of epochs, at rates that are halved after each, with the curve before or after
// the schedule, and goes on from a checkpoint if there is one.
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

TEST_CASE("the chart of a training run has a panel for the loss and one for each metric") {
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
  CHECK(chart.panels[1].series[1].x == std::vector<double>{2});  // test_acc came in epoch 2
  CHECK(chart.panels[1].series[1].y == std::vector<double>{0.7});
  CHECK(chart.panels[3].series[0].y == std::vector<double>{0.1, 0.05});
  CHECK(svg_problem(chart.svg()) == "");
}

TEST_CASE("the chart of a training run has a series for each named test set") {
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
    "a training chart has no panel for unknown rates and scales, and can be drawn without epochs") {
  const auto chart = sconce::training_chart({.scales = {std::nan(""), std::nan("")}});
  CHECK(labels_of(chart) == std::vector<std::string>{"loss: train"});
  CHECK(svg_problem(chart.svg()) == "");
}

TEST_CASE("TrainingCurve draws the fit after each epoch") {
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
    "the training curve shows the learning rate of the epoch's steps, wherever it is among the "
    "callbacks") {
  const TempDir folder;
  for (const bool is_first : {false, true}) {
    TrainingCurve curve(folder.path() / "training.svg");
    fit(curve, 3, {}, is_first);
    CHECK(curve.history().learning_rates == std::vector<double>{0.4, 0.2, 0.1});
  }
}

TEST_CASE("the training curve shows the scale of an enabled GradScaler") {
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

TEST_CASE("a resumed fit draws earlier epochs, even if the run had no chart before") {
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
  TrainingCurve again(folder.path() / "again.svg");  // of a fit that is over
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
  const auto file = folder.write("file", "") / "training.svg";  // below a file
  const sconce::test::Warnings warnings;
  TrainingCurve curve(file);
  CHECK(fit(curve, 3).epochs.size() == 3);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages().front(),
             ContainsSubstring("sconce::TrainingCurve: ") && ContainsSubstring(file.string()));
}

TEST_CASE("the training curve adds no host read to a step") {
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

namespace {

// A model with buffers, a dropout, a frozen layer and a layer in evaluation mode.
torch::nn::Sequential model_of_all_kinds() {
  torch::manual_seed(0);
  torch::nn::Sequential model(torch::nn::Linear(2, 8), torch::nn::BatchNorm1d(8),
                              torch::nn::Dropout(0.5), torch::nn::Linear(8, 8),
                              torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 2));
  model[3]->as<torch::nn::Linear>()->weight.requires_grad_(false);
  model[4]->eval();
  return model;
}

// All that training reads or writes, as tensors.
std::vector<torch::Tensor> state_of(torch::nn::Sequential& model,
                                    torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all = {at::detail::getDefaultCPUGenerator().get_state()};
  for (const auto& parameter : model->parameters()) {
    all.push_back(parameter.detach().clone());
    if (parameter.grad().defined()) all.push_back(parameter.grad().clone());
  }
  for (const auto& buffer : model->buffers()) all.push_back(buffer.clone());
  std::stringstream modes;
  for (const auto& module : model->modules()) modes << module->is_training();
  const auto bytes = torch::pickle_save(sconce::Stateful(optimizer).state_dict());
  const std::string text = modes.str() + std::string(bytes.begin(), bytes.end());
  all.push_back(torch::tensor(std::vector<int64_t>(text.begin(), text.end())));
  return all;
}

bool equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.equal(y); });
}

const sconce::LRFindOptions on_the_cpu = {.trainer = {.num_gpus = 0}};

template <class Optimizer, class Options>
void check_restored(const Options& options) {
  auto model = model_of_all_kinds(), twin = model_of_all_kinds();
  Optimizer optimizer(model->parameters(), options), of_twin(twin->parameters(), options);
  const auto batches = sconce::test::data().train;
  Trainer trainer({.num_gpus = 0});
  for (int epoch = 0; epoch < 2; ++epoch) {
    torch::manual_seed(epoch);
    const auto before = state_of(model, optimizer);  // first of a new optimizer
    sconce::lr_find(model, optimizer, batches, on_the_cpu);
    CHECK(equal(state_of(model, optimizer), before));
    for (const auto& [net, step] : {std::pair(&model, &optimizer), std::pair(&twin, &of_twin)}) {
      torch::manual_seed(epoch + 1);
      trainer.fit(*net, *step, batches);
      (*net)[4]->eval();
    }
    torch::manual_seed(epoch + 1);
    CHECK(equal(state_of(model, optimizer), state_of(twin, of_twin)));
  }
}

}  // namespace

TEST_CASE("lr_find restores model, optimizer, modes, gradients, and generator bit for bit") {
  check_restored<sconce::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
  check_restored<sconce::optim::Adam>(torch::optim::AdamOptions(0.01));
  check_restored<sconce::optim::Adadelta>(sconce::optim::AdadeltaOptions(1.0));
  check_restored<torch::optim::AdamW>(torch::optim::AdamWOptions(0.01));
  check_restored<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
}

TEST_CASE("lr_find returns the smoothed losses of a sweep, with a suggestion and a chart") {
  const auto batches = sconce::test::data().train;  // 6 batches, so there are several epochs
  auto model = sconce::test::net_without_dropout(), twin = sconce::test::net_without_dropout();
  torch::optim::SGD optimizer(model->parameters(), 0.1), of_twin(twin->parameters(), 0.1);
  const auto found =
      sconce::lr_find(model, optimizer, batches,
                      {.start_lr = 1e-4, .end_lr = 1, .num_it = 41, .trainer = {.num_gpus = 0}});
  std::vector<double> losses;
  double mean = 0, weights = 0;
  sconce::AnyBatches::Next next;
  for (int step = 0; step < 41; ++step) {
    if (step % 6 == 0) next = batches.begin(0, step / 6);
    const auto batch = next();
    const auto rows = batch.as<sconce::data::Dataset>();
    of_twin.param_groups()[0].options().set_lr(1e-4 * std::pow(10., step / 10.));
    of_twin.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(twin->forward(rows.data), rows.target);
    loss.backward();
    of_twin.step();
    mean = 0.98 * mean + loss.item<double>();
    weights = 0.98 * weights + 1;
    losses.push_back(mean / weights);
  }
  REQUIRE(found.lrs.size() == 41);
  CHECK(found.lrs[0] == 1e-4);
  CHECK(found.lrs[10] == Catch::Approx(1e-3));
  CHECK(found.lrs[40] == Catch::Approx(1));
  for (size_t i = 0; i < 41; ++i) CHECK(found.losses[i] == Catch::Approx(losses[i]));
  REQUIRE(found.suggestion);
  CHECK(*found.suggestion > 1e-3);
  CHECK(*found.suggestion < 0.5);
  const auto chart = found.chart();
  CHECK(labels_of(chart) == std::vector<std::string>{"loss: smoothed loss"});
  CHECK(chart.panels[0].series[0].x[10] == Catch::Approx(-3));
  CHECK(svg_problem(chart.svg()).empty());
}

namespace {

// A model whose loss is `first`, then grows by a factor with each step.
struct Diverging : torch::nn::Module {
  explicit Diverging(double first, double factor_of_a_step)
      : loss(first), factor(factor_of_a_step) {}
  torch::Tensor training_step(const sconce::data::Dataset&) {
    const auto value = w * 0 + loss;
    loss *= factor;
    return value.sum();
  }
  double loss, factor;
  torch::Tensor w = register_parameter("w", torch::ones({1}));
};

}  // namespace

TEST_CASE("lr_find ends where the loss diverges, and reports a loss that diverges at once") {
  const auto batches = sconce::test::data().train;
  const auto find = [&](double first, double factor, sconce::LRFindOptions options = on_the_cpu) {
    Diverging model(first, factor);
    torch::optim::SGD optimizer(model.parameters(), 0.1);
    auto found = sconce::lr_find(model, optimizer, batches, options);
    CHECK(optimizer.param_groups()[0].options().get_lr() == 0.1);
    return found;
  };
  const auto found = find(1, 1.1);
  CHECK(found.losses.size() < 40);
  CHECK(found.losses.back() > 4);
  CHECK_FALSE(found.suggestion);  // it never descends
  CHECK(find(1, 1.1, {.num_it = 50, .stop_div = false, .trainer = {.num_gpus = 0}}).lrs.size() ==
        50);
  const std::string message =
      "sconce::lr_find: expected a loss that stays finite and below 4 times "
      "its lowest value for more than 15 steps, got one that diverged after ";
  CHECK_THROWS_WITH(find(1, 2), ContainsSubstring(message));
  CHECK_THROWS_WITH(find(std::nan(""), 1),
                    ContainsSubstring(message + "0 steps, at a learning rate of 1e-07"));
}

TEST_CASE("lr_find restores the model if a step throws, and rejects options before any work") {
  struct Throws : Diverging {
    using Diverging::Diverging;
    torch::Tensor training_step(const sconce::data::Dataset& batch) {
      if (++steps == 3) throw std::runtime_error("thrown by a step");
      return w.sum() * 1e6 + Diverging::training_step(batch);
    }
    int steps = 0;
  } model(1, 1);
  const auto batches = sconce::test::data().train;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  model.eval();
  CHECK_THROWS_WITH(sconce::lr_find(model, optimizer, batches, on_the_cpu), "thrown by a step");
  CHECK(model.steps == 3);
  CHECK(model.w.item<double>() == 1);
  CHECK_FALSE(model.is_training());
  CHECK(optimizer.param_groups()[0].options().get_lr() == 0.1);
  const auto refusal = [&](const sconce::LRFindOptions& options) {
    return sconce::test::error_of([&] { sconce::lr_find(model, optimizer, batches, options); });
  };
  const std::string who = "sconce::lr_find: expected ";
  CHECK(refusal({.start_lr = 0}) == who + "a start_lr above 0, got 0");
  CHECK(refusal({.start_lr = 1, .end_lr = 1}) == who + "an end_lr above start_lr, 1, got 1");
  CHECK(refusal({.num_it = 9}) == who + "a num_it of at least 10, got 9");
  torch::nn::Sequential lazy(sconce::nn::LazyLinear(2));
  torch::optim::SGD of_lazy(lazy->parameters(), 0.1);
  CHECK_THROWS_WITH(sconce::lr_find(lazy, of_lazy, batches, on_the_cpu),
                    ContainsSubstring("uninitialized"));
}
