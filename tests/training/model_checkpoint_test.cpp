#include "sconce/training/model_checkpoint.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "catch.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/trainer.hpp"
#include "support/fitting.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::Checkpoint;
using sconce::ModelCheckpoint;
using sconce::SchedulerInterval;
using sconce::Trainer;
using sconce::test::data;
using sconce::test::net;
using sconce::test::net_without_dropout;

namespace {

// Returns the parameters after three epochs of six steps. If a folder is given, the fit is stopped
// and resumed every four steps.
template <class Make, class Wrap, class Optimizer>
std::vector<torch::Tensor> fit_in_parts(torch::Device device, const std::string& folder,
                                        const Make& make, const Wrap& wrap,
                                        const Optimizer& optimizer_of) {
  for (;;) {
    auto model = make();
    auto optimizer = optimizer_of(model->parameters());
    sconce::optim::lr_scheduler::StepLR scheduler(optimizer, /*step_size=*/1);
    std::optional<Checkpoint> checkpoint;
    std::optional<ModelCheckpoint> saving;
    sconce::LRScheduling scheduling(scheduler);
    int steps = 0;
    sconce::test::StopWhen stopping([&steps] { return ++steps == 4; });
    auto fit_data = data();
    fit_data.callbacks = {&scheduling};
    if (!folder.empty()) {
      checkpoint.emplace(folder, sconce::CheckpointOptions{.resume = true});
      fit_data.callbacks.push_back(&saving.emplace(*checkpoint));
      fit_data.callbacks.push_back(&stopping);
    }
    auto wrapped = wrap(model);
    Trainer trainer({.max_epochs = 3, .device = device});
    if (trainer.fit(wrapped, optimizer, fit_data).stopped) continue;
    if (checkpoint) {  // with the model's names, regardless of the wrapper
      const auto saved = sconce::io::load_torch(checkpoint->latest()).toGenericDict();
      CHECK(saved.at("model").toGenericDict().contains("0.weight"));
    }
    return model->parameters();
  }
}

auto sgd(const std::vector<torch::Tensor>& parameters) {
  return sconce::optim::SGD(parameters, torch::optim::SGDOptions(0.5).momentum(0.9));
}

template <class Make, class Wrap, class Optimizer = decltype(&sgd)>
void check_parts(torch::Device device, const Make& make, const Wrap& wrap,
                 const Optimizer& optimizer_of = &sgd) {
  const sconce::test::TempDir folder;
  const auto whole = fit_in_parts(device, "", make, wrap, optimizer_of);
  const auto parts = fit_in_parts(device, folder.path().string(), make, wrap, optimizer_of);
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(torch::allclose(parts[i], whole[i], 0, device.is_cpu() ? 0 : 1e-6));
  }
}

}  // namespace

TEST_CASE(
    "a fit that is stopped and resumed repeatedly gives the same result as an uninterrupted fit") {
  check_parts(torch::kCPU, net, [](auto& model) { return model; });
  check_parts(torch::kCPU, net_without_dropout, [](auto& model) {
    return sconce::nn::DataParallel(model, {.device_ids = {torch::kCPU, torch::kCPU}});
  });
  check_parts(
      torch::kCPU, net, [](auto& model) { return model; },
      [](const auto& parameters) { return torch::optim::AdamW(parameters, 0.01); });
}

TEST_CASE("on a GPU, a fit continues from its checkpoint", "[gpu]") {
  sconce::test::require_gpu();
  check_parts(sconce::gpu(), net, [](auto& model) { return model; });
}

TEST_CASE("a fit with a checkpoint validates the optimizer and the data before training starts") {
  const sconce::test::TempDir folder;
  auto model = net();
  struct Own : torch::optim::SGD {
    using SGD::SGD;
  };
  Own without_state(model->parameters(), 0.1);
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  Checkpoint checkpoint(folder.path(), {.resume = true});
  ModelCheckpoint saving(checkpoint);
  auto with = data();
  with.callbacks = {&saving};
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0}).fit(model, without_state, with),
                    ContainsSubstring("a sconce optimizer") && ContainsSubstring("Own"));
  CHECK(checkpoint.latest().empty());
  Trainer({.num_gpus = 0}).fit(model, optimizer, with);
  auto other = data(96, /*batch_size=*/8);
  other.callbacks = {&saving};
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0}).fit(model, optimizer, other),
                    ContainsSubstring("expected 6 training batches"));
}

TEST_CASE(
    "a ModelCheckpoint saves after all other callbacks have run, regardless of its position") {
  struct Counting : sconce::TrainerCallback {
    void on_epoch_end(sconce::Fit&) override { ++epochs; }
    std::string name() const override { return "counting"; }
    std::optional<sconce::Stateful> state() override { return sconce::Stateful(*this); }
    c10::IValue state_dict() const { return epochs; }
    void load_state_dict(const c10::IValue& state) { epochs = state.toInt(); }
    int64_t epochs = 0;
  };
  const sconce::test::TempDir folder;
  for (const int64_t epochs : {2, 3}) {
    Checkpoint checkpoint(folder.path(), {.resume = true});
    ModelCheckpoint saving(checkpoint);
    Counting counting;
    auto model = net();
    sconce::optim::SGD optimizer(model->parameters(), 0.1);
    auto with = data();
    with.callbacks = {&saving, &counting};
    Trainer({.max_epochs = static_cast<int>(epochs), .num_gpus = 0}).fit(model, optimizer, with);
    CHECK(counting.epochs == epochs);
    CHECK(sconce::io::load_torch(checkpoint.latest()).toGenericDict().at("counting") == epochs);
  }
}

TEST_CASE(
    "an unfinished epoch's metric sums are saved, and sums from different metrics are rejected") {
  const sconce::test::TempDir folder;
  const auto fit = [&](const sconce::Metrics& metrics, int64_t stop_after) {
    Checkpoint checkpoint(folder.path(), {.resume = true});
    ModelCheckpoint saving(checkpoint);
    auto model = net();
    sconce::optim::SGD optimizer(model->parameters(), 0.1);
    int64_t steps = 0;
    sconce::test::StopWhen stopping([&] { return ++steps == stop_after; });
    auto with = data();
    with.callbacks = {&saving, &stopping};
    return Trainer({.num_gpus = 0, .metrics = metrics}).fit(model, optimizer, with);
  };
  const sconce::Metrics accuracy = {{"acc", std::make_shared<sconce::metrics::Accuracy>()}};
  CHECK(fit(accuracy, 3).stopped);
  CHECK_THROWS_WITH(fit({}, 0),
                    ContainsSubstring("expected the same metrics as in the checkpoint"));
  CHECK(fit(accuracy, 0).epochs[0].examples == 96);
}

TEST_CASE("the monitored metric determines which checkpoint is the best") {
  const sconce::test::TempDir folder;
  Checkpoint checkpoint(folder.path());
  const std::string monitor = GENERATE("test_loss", "val_loss", "test_acc", "test_wrong");
  const bool is_highest = monitor == "test_acc";
  const auto explicit_mode =
      is_highest ? sconce::optim::MetricMode::max : sconce::optim::MetricMode::min;
  const auto mode = GENERATE_COPY(std::optional(explicit_mode), std::nullopt);
  ModelCheckpoint saving(checkpoint, {.monitor = monitor, .mode = mode});
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), 3.0);  // too large: losses go up and down
  auto with = data();
  with.callbacks = {&saving};
  // Computes the fraction of incorrect predictions.
  struct Wrong : sconce::metrics::Accuracy {
    torch::Tensor compute(const torch::Tensor& sums) const override {
      return 1 - Accuracy::compute(sums);
    }
    using Metric::compute;
    std::optional<bool> higher_is_better() const override { return false; }
  };
  const sconce::Metrics metrics = {{"acc", std::make_shared<sconce::metrics::Accuracy>()},
                                   {"wrong", std::make_shared<Wrong>()}};
  const auto epochs = Trainer({.max_epochs = 6, .num_gpus = 0, .metrics = metrics})
                          .fit(model, optimizer, with)
                          .epochs;
  const auto name = monitor == "val_loss" ? "test_loss" : monitor;
  const auto less = [&](const auto& a, const auto& b) {
    return is_highest ? a.at(name) > b.at(name) : a.at(name) < b.at(name);
  };
  const auto best = std::min_element(epochs.begin(), epochs.end(), less);
  CHECK(epochs.front().at(name) != best->at(name));
  CHECK(sconce::io::load_torch(checkpoint.best()).toGenericDict().at("epoch") == best->epoch);
}

namespace {

// A fit that saves checkpoints.
struct SavedFitting : sconce::test::Fitting<sconce::optim::SGD> {
  explicit SavedFitting(Checkpoint& checkpoint, double lr = 0.1)
      : Fitting({}, data(), lr), saving(checkpoint) {
    with.callbacks = {&saving};
  }
  std::vector<torch::Tensor> parts() { return model->parameters(); }

  ModelCheckpoint saving;
};

torch::Tensor saved_weight(const std::filesystem::path& file) {
  const auto saved = sconce::io::load_torch(file).toGenericDict();
  return saved.at("model").toGenericDict().at("0.weight").toTensor();
}

}  // namespace

TEST_CASE("a checkpoint cannot be saved if a callback adds a value with a reserved name") {
  struct AddsSeconds : sconce::TrainerCallback {
    void on_epoch_end(sconce::Fit& fit) override { fit.epochs.back().metrics.insert("seconds", 1); }
  };
  const sconce::test::TempDir folder;
  Checkpoint checkpoint(folder.path());
  SavedFitting fitting(checkpoint);
  AddsSeconds adding;
  fitting.with.callbacks.insert(fitting.with.callbacks.begin(), &adding);
  CHECK_THROWS_WITH(fitting.fit(), ContainsSubstring("reserved name 'seconds'"));
  CHECK(checkpoint.latest().empty());
}

TEST_CASE("ModelCheckpoint rejects a negative every_n_train_steps") {
  const sconce::test::TempDir folder;
  Checkpoint checkpoint(folder.path());
  CHECK_THROWS_WITH(
      ModelCheckpoint(checkpoint, {.every_n_train_steps = -1}),
      StartsWith("sconce::ModelCheckpoint: expected every_n_train_steps to be at least 0, got "
                 "-1"));
}

TEST_CASE("ModelCheckpoint rejects an unknown monitor before it accesses the folder") {
  const sconce::test::TempDir folder;
  Checkpoint checkpoint(folder.path() / "run", {.resume = true});
  SavedFitting fitting(checkpoint);
  ModelCheckpoint saving(checkpoint, {.monitor = "test_nothing"});
  fitting.with.callbacks = {&saving};
  CHECK_THROWS_WITH(fitting.fit(),
                    StartsWith("sconce::ModelCheckpoint: expected monitor to be one of [loss, "
                               "train_acc, test_loss, test_acc], got test_nothing"));
  CHECK(std::filesystem::is_empty(folder.path() / "run"));
  CHECK(fitting.parts()[0].equal(net()->parameters()[0]));
  ModelCheckpoint by_test(checkpoint, {.monitor = "test_acc"});
  fitting.with.callbacks = {&by_test};
  fitting.with.test.reset();
  CHECK_THROWS_WITH(fitting.fit(), ContainsSubstring("one of [loss, train_acc], got test_acc"));
}

TEST_CASE(
    "without a monitor, the best checkpoint is chosen by test_acc, and without test data there is "
    "no best checkpoint") {
  for (const bool has_test : {true, false}) {
    const sconce::test::TempDir folder;
    Checkpoint checkpoint(folder.path());
    SavedFitting fitting(checkpoint);
    if (!has_test) fitting.with.test.reset();
    fitting.fit();
    CHECK_FALSE(checkpoint.latest().empty());
    CHECK(checkpoint.best().empty() == !has_test);
  }
}

TEST_CASE("a fit resumed with a different monitor restarts the best-checkpoint selection") {
  const sconce::test::TempDir folder;
  const auto resume = [&](int epochs, sconce::ModelCheckpointOptions options) {
    Checkpoint checkpoint(folder.path(), {.resume = true});
    SavedFitting fitting(checkpoint);
    ModelCheckpoint saving(checkpoint, options);
    fitting.with.callbacks = {&saving};
    const auto done = fitting.fit({.max_epochs = epochs}).epochs;
    const auto best = sconce::io::load_torch(checkpoint.best()).toGenericDict();
    return std::pair(best.at("epoch").toInt(), done);
  };
  const auto mode = sconce::optim::MetricMode::max;
  const sconce::test::Warnings warnings;
  CHECK(resume(2, {.monitor = "test_acc"}).first <= 2);
  CHECK(warnings.messages().empty());
  // Accuracies are positive, whereas losses are negated for comparison and are therefore negative.
  CHECK(resume(3, {.monitor = "test_loss"}).first == 3);
  const auto [best, epochs] = resume(6, {.monitor = "test_loss", .mode = mode});
  const auto less = [](const auto& a, const auto& b) {
    return a.at("test_loss") < b.at("test_loss");
  };
  CHECK(best == std::max_element(epochs.begin() + 3, epochs.end(), less)->epoch);
  REQUIRE(warnings.messages().size() == 2);
  CHECK_THAT(warnings.messages()[1],
             ContainsSubstring("the best checkpoint so far has the lowest test_loss; "
                               "restarting with the highest test_loss"));
}

TEST_CASE(
    "without a mode, ModelCheckpoint throws before the first step if the monitored value's "
    "direction is unknown") {
  const sconce::test::TempDir folder;
  Checkpoint checkpoint(folder.path() / "run");
  SavedFitting fitting(checkpoint);
  ModelCheckpoint saving(checkpoint, {.monitor = "test_mean"});
  fitting.with.callbacks = {&saving};
  const sconce::Metrics metrics = {{"mean", std::make_shared<sconce::metrics::MeanMetric>()}};
  CHECK_THROWS_WITH(
      fitting.fit({.metrics = metrics}),
      StartsWith("sconce::ModelCheckpoint: expected an explicit mode (min or max) "
                 "for test_mean (it is unknown whether lower or higher is better), got none"));
  CHECK(std::filesystem::is_empty(folder.path() / "run"));
  CHECK(fitting.parts()[0].equal(net()->parameters()[0]));
  const sconce::Metrics undirected = {{"acc", std::make_shared<sconce::metrics::MeanMetric>()}};
  ModelCheckpoint usual(checkpoint);  // for "test_acc"
  fitting.with.callbacks = {&usual};
  CHECK_THROWS_WITH(fitting.fit({.metrics = undirected}),
                    ContainsSubstring("mode (min or max) for test_acc"));
}

TEST_CASE(
    "an epoch's metric sums are saved and restored correctly even if callbacks call evaluate") {
  struct Evaluating : sconce::TrainerCallback {
    explicit Evaluating(std::function<void()> f) : evaluate(std::move(f)) {}
    void load(sconce::Fit&) override { evaluate(); }
    void on_fit_start(sconce::Fit&) override { evaluate(); }
    void on_after_optimizer_step(sconce::Fit&) override { evaluate(); }
    std::function<void()> evaluate;
  };
  const auto values = [](bool evaluates) {
    const sconce::test::TempDir folder;
    for (;;) {
      Checkpoint checkpoint(folder.path(), {.resume = true});
      SavedFitting fitting(checkpoint);
      Trainer trainer({.max_epochs = 2, .num_gpus = 0});
      Evaluating evaluating([&] {
        if (evaluates) trainer.evaluate(fitting.model, *fitting.with.test);
      });
      int steps = 0;
      sconce::test::StopWhen stopping([&] { return ++steps == 4; });
      fitting.with.callbacks.insert(fitting.with.callbacks.end(), {&evaluating, &stopping});
      const auto result = trainer.fit(fitting.model, fitting.optimizer, fitting.with);
      if (result.stopped) continue;
      std::vector<double> all;
      for (const auto& epoch : result.epochs) {
        all.insert(all.end(), {epoch.loss, epoch.at("train_acc"), epoch.at("test_acc")});
      }
      return all;
    }
  };
  CHECK(values(true) == values(false));
}

TEST_CASE(
    "a second fit with the same checkpoint saves checkpoints in the same way as the first fit") {
  const sconce::test::TempDir folder;
  Checkpoint checkpoint(folder.path());
  SavedFitting first(checkpoint), second(checkpoint, /*lr=*/0.3);
  first.fit({.max_epochs = 3});
  CHECK(saved_weight(checkpoint.latest()).equal(first.parts()[0]));
  CHECK(second.fit({.max_epochs = 2}).epochs.size() == 2);
  CHECK(saved_weight(checkpoint.latest()).equal(second.parts()[0]));
}

TEST_CASE(
    "a fit is rejected before its first step if another Checkpoint is writing to the same folder") {
  const sconce::test::TempDir folder;
  const std::string name = folder.path().string();
  std::optional<Checkpoint> other(folder.path());
  Checkpoint checkpoint(folder.path());
  SavedFitting fitting(checkpoint), fits(*other);
  fits.fit();
  CHECK_THROWS_WITH(
      fitting.fit(),
      ContainsSubstring(name + ": expected a folder that no other Checkpoint writes to"));
  other.reset();
  CHECK_THROWS_WITH(
      fitting.fit(),
      ContainsSubstring(name + ": expected a folder without checkpoints, or the resume option"));
  CHECK(fitting.parts()[0].equal(net()->parameters()[0]));
}

TEST_CASE("a fit cannot be resumed with a different accumulate_grad_batches") {
  const sconce::test::TempDir folder;
  Checkpoint checkpoint(folder.path(), {.resume = true});
  SavedFitting fitting(checkpoint);
  fitting.fit({.accumulate_grad_batches = 2});
  CHECK_THROWS_WITH(
      fitting.fit({.max_epochs = 2, .accumulate_grad_batches = 3}),
      ContainsSubstring("expected accumulate_grad_batches 2 (as in the checkpoint), got 3"));
}

TEST_CASE("an old checkpoint without accumulate_grad_batches can be resumed") {
  const sconce::test::TempDir folder, other;
  Checkpoint checkpoint(folder.path(), {.resume = true}), of_whole(other.path());
  SavedFitting whole(of_whole);
  whole.fit({.max_epochs = 2, .accumulate_grad_batches = 2});

  SavedFitting first(checkpoint);
  first.fit({.accumulate_grad_batches = 2});
  const auto file = checkpoint.latest();
  auto saved = sconce::io::load_torch(file).toGenericDict();
  REQUIRE(saved.at("extra").toGenericDict().erase("accumulate") == 1);
  sconce::io::save_torch(file, saved);
  SavedFitting resumed(checkpoint);
  CHECK(resumed.fit({.max_epochs = 2, .accumulate_grad_batches = 2}).epochs.size() == 2);
  CHECK(resumed.parts()[0].equal(whole.parts()[0]));
}

TEST_CASE("a resumed fit warns only about options overridden by its checkpoint") {
  const sconce::test::TempDir folder;
  const bool is_scheduled = GENERATE(false, true);
  const auto warnings_with = [&](double lr, double gamma, int epochs) {
    Checkpoint checkpoint(folder.path(), {.resume = true});
    SavedFitting fitting(checkpoint, lr);
    std::optional<sconce::optim::lr_scheduler::ExponentialLR> scheduler;
    std::optional<sconce::LRScheduling> scheduling;
    if (is_scheduled) {
      scheduler.emplace(fitting.optimizer, gamma);
      fitting.with.callbacks.push_back(&scheduling.emplace(*scheduler));
    }
    const sconce::test::Warnings warnings;
    fitting.fit({.max_epochs = epochs});
    return warnings.messages();
  };
  CHECK(warnings_with(0.5, 0.5, 1).empty());
  CHECK(warnings_with(0.5, 0.5, 2).empty());
  const auto messages = warnings_with(0.25, 0.125, 3);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(
      messages[0],
      ContainsSubstring("sconce::ModelCheckpoint: continuing with the checkpoint's options: "));
  if (is_scheduled) {
    CHECK_THAT(messages[0], ContainsSubstring("scheduler.base_lrs[0] 0.5 instead of 0.25") &&
                                ContainsSubstring("scheduler.gamma 0.5 instead of 0.125") &&
                                !ContainsSubstring("].lr"));
  } else {
    CHECK_THAT(messages[0], ContainsSubstring("param_groups[0].lr 0.5 instead of 0.25"));
  }
}

TEST_CASE(
    "a resumed fit warns about changed warm-restart options but not about a changed position in "
    "the cycle") {
  const sconce::test::TempDir folder;
  const auto warnings_with = [&](int64_t T_mult, int epochs) {
    Checkpoint checkpoint(folder.path(), {.resume = true});
    SavedFitting fitting(checkpoint);
    sconce::optim::lr_scheduler::CosineAnnealingWarmRestarts scheduler(fitting.optimizer, 1,
                                                                       T_mult);
    sconce::LRScheduling scheduling(scheduler);
    fitting.with.callbacks.push_back(&scheduling);
    const sconce::test::Warnings warnings;
    fitting.fit({.max_epochs = epochs});
    return warnings.messages();
  };
  for (const int epochs : {1, 2, 3}) CHECK(warnings_with(2, epochs).empty());
  const auto messages = warnings_with(3, 4);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], Catch::Matchers::EndsWith(
                              "the checkpoint's options: scheduler.T_mult 2 instead of 3"));
}

TEST_CASE(
    "a resumed fit warns about changed ReduceLROnPlateau options but not about changed counters") {
  const sconce::test::TempDir folder;
  const auto warnings_with = [&](double factor, int epochs) {
    Checkpoint checkpoint(folder.path(), {.resume = true});
    SavedFitting fitting(checkpoint);
    sconce::optim::lr_scheduler::ReduceLROnPlateau scheduler(
        fitting.optimizer, {.factor = factor, .patience = 0, .cooldown = 2});
    sconce::PlateauScheduling scheduling(scheduler, "train_acc");
    fitting.with.callbacks.push_back(&scheduling);
    const sconce::test::Warnings warnings;
    fitting.fit({.max_epochs = epochs});
    return warnings.messages();
  };
  for (const int epochs : {1, 2, 4, 5}) CHECK(warnings_with(0.5, epochs).empty());
  const auto messages = warnings_with(0.25, 6);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], Catch::Matchers::EndsWith(
                              "the checkpoint's options: plateau.factor 0.5 instead of 0.25"));
}
