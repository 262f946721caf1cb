// Tests how step values, counts, and named test sets are averaged, reported, and validated.

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/reduce_lr_on_plateau.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/epoch_logger.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"
#include "support/step_counts.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using sconce::EarlyStopping;
using sconce::StepOutput;
using sconce::Trainer;
using sconce::data::Batches;
using sconce::data::Dataset;
using sconce::test::points;
using sconce::test::TempDir;

namespace {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// A model whose step returns the values that a function computes from the batch mean.
struct ValuesModel : torch::nn::Cloneable<ValuesModel> {
  explicit ValuesModel(std::function<NamedTensors(const torch::Tensor&)> f) : values(std::move(f)) {
    reset();
  }
  void reset() override { linear = register_module("linear", torch::nn::Linear(2, 2)); }
  StepOutput training_step(const Dataset& batch) {
    const auto output = linear->forward(batch.data);
    return {.loss = torch::nn::functional::cross_entropy(output, batch.target),
            .output = output,
            .target = batch.target,
            .values = values(batch.data.mean())};
  }
  std::function<NamedTensors(const torch::Tensor&)> values;
  torch::nn::Linear linear = nullptr;
};

NamedTensors mean_and_square(const torch::Tensor& mean) {
  return {{"mean", mean}, {"square", mean.square().reshape({1})}};
}

struct ValuesFitting {
  explicit ValuesFitting(std::function<NamedTensors(const torch::Tensor&)> f = mean_and_square)
      : model((torch::manual_seed(0), std::make_shared<ValuesModel>(std::move(f)))),
        optimizer(model->parameters(), torch::optim::SGDOptions(0.1)) {}

  sconce::FitResult fit(sconce::TrainerOptions options = {}) {
    if (!options.device) options.num_gpus = 0;
    return Trainer(std::move(options)).fit(model, optimizer, with);
  }

  std::shared_ptr<ValuesModel> model;
  sconce::optim::SGD optimizer;
  sconce::FitData with = {.train = Batches(points(20), {.batch_size = 8}),
                          .test = Batches(points(6, /*seed=*/2), {.batch_size = 4})};
};

// Returns the mean of `value` over batches of `size` rows, weighted by the number of examples in
// each batch.
double weighted_mean(const torch::Tensor& all, int64_t size,
                     const std::function<torch::Tensor(const torch::Tensor&)>& value) {
  double sum = 0;
  for (const auto& batch : all.split(size)) {
    sum += value(batch.mean()).item<double>() * static_cast<double>(batch.size(0));
  }
  return sum / static_cast<double>(all.size(0));
}

void check_values(const sconce::EpochMetrics& epoch) {
  const auto same = [](const torch::Tensor& mean) { return mean; };
  const auto square = [](const torch::Tensor& mean) { return mean.square(); };
  const auto train = points(20).data, test = points(6, 2).data;
  CHECK(epoch.at("train_mean") == Approx(weighted_mean(train, 8, same)));
  CHECK(epoch.at("train_square") == Approx(weighted_mean(train, 8, square)));
  CHECK(epoch.at("test_mean") == Approx(weighted_mean(test, 4, same)));
  CHECK(epoch.at("test_square") == Approx(weighted_mean(test, 4, square)));
}

sconce::LossSum over_targets(const torch::Tensor& output, const torch::Tensor& target) {
  const auto sum = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
  return {.sum = torch::nn::functional::cross_entropy(output, target, sum),
          .count = (target != -100).sum()};
}

// Returns points whose four-row batches contain 4, 0, 1, 3, and 2 targets that are not ignored.
Dataset with_ignored_targets() {
  auto dataset = points(20);
  const std::array<int64_t, 5> targets = {4, 0, 1, 3, 2};
  for (int64_t i = 0; i < 5; ++i) {
    dataset.target.slice(0, 4 * i + targets[static_cast<size_t>(i)], 4 * i + 4).fill_(-100);
  }
  return dataset;
}

// A model whose step returns the loss and a count. A given function computes the count from the
// batch.
struct TargetsModel : torch::nn::Cloneable<TargetsModel> {
  explicit TargetsModel(std::function<torch::Tensor(const Dataset&)> f) : count(std::move(f)) {
    reset();
  }
  void reset() override { linear = register_module("linear", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x); }
  StepOutput training_step(const Dataset& batch) {
    const auto output = linear->forward(batch.data);
    return {.loss = over_targets(output, batch.target).sum,
            .values = {{"mean", batch.data.mean()}},
            .count = count(batch)};
  }
  std::function<torch::Tensor(const Dataset&)> count;
  torch::nn::Linear linear = nullptr;
};

torch::Tensor targets_of(const Dataset& batch) {
  return (batch.target != -100).sum();
}

struct CountedFit {
  sconce::FitResult result = {};
  torch::Tensor parameters = {};
};

torch::nn::Linear linear_with_seed() {
  torch::manual_seed(0);
  return torch::nn::Linear(2, 2);
}

torch::Tensor flat_parameters(const torch::nn::Module& model) {
  std::vector<torch::Tensor> all;
  for (const auto& parameter : model.parameters()) all.push_back(parameter.detach().flatten());
  return torch::cat(all);
}

// Runs a fit with `over_targets` as the loss, unless the options specify a different loss.
CountedFit fit_counted(const Dataset& dataset, int64_t batch_size, sconce::TrainerOptions options,
                       sconce::Callbacks callbacks = {}) {
  auto model = linear_with_seed();
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5));
  if (!options.loss) options.loss = over_targets;
  if (!options.num_gpus) options.num_gpus = 0;
  const sconce::FitData with = {.train = Batches(dataset, {.batch_size = batch_size}),
                                .callbacks = std::move(callbacks)};
  auto result = Trainer(std::move(options)).fit(model, optimizer, with);
  return {std::move(result), flat_parameters(*model)};
}

std::string refusal_of_count(std::function<torch::Tensor(const Dataset&)> count) {
  TargetsModel model(std::move(count));
  sconce::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.5));
  return sconce::test::error_of([&] {
    Trainer({.num_gpus = 0, .metrics = sconce::Metrics()})
        .fit(model, optimizer, Batches(with_ignored_targets(), {.batch_size = 4}));
  });
}

std::string refusal_of(std::function<NamedTensors(const torch::Tensor&)> values) {
  return sconce::test::error_of([&] { ValuesFitting(std::move(values)).fit(); });
}

}  // namespace

TEST_CASE("step values are averaged over an epoch's examples, in both training and testing") {
  ValuesFitting fitting;
  std::ostringstream log;
  sconce::EpochLogger lines(log);
  fitting.with.callbacks = {&lines};
  const auto result = fitting.fit({.max_epochs = 2});
  for (const auto& epoch : result.epochs) check_values(epoch);
  CHECK_THAT(log.str(), Matches("epoch 1/2: loss [\\d.]+, train acc [\\d.]+, train mean [-\\d.]+, "
                                "train square [\\d.]+, test acc [\\d.]+, test mean [-\\d.]+, "
                                "test square [\\d.]+\n[^]*"));
  const auto values = Trainer({.num_gpus = 0}).evaluate(fitting.model, *fitting.with.test);
  CHECK(values.at("mean") == result.epochs[1].at("test_mean"));
}

TEST_CASE(
    "step values are averaged correctly with gradient accumulation, replicas, and captured steps") {
  ValuesFitting accumulating;
  check_values(accumulating.fit({.accumulate_grad_batches = 2}).epochs[0]);

  ValuesFitting captured;
  captured.with.train = Batches(points(20), {.batch_size = 4});
  ValuesFitting eager;
  eager.with.train = captured.with.train;
  const auto graph = captured.fit({.max_epochs = 3, .graph = true});
  const auto plain = eager.fit({.max_epochs = 3});
  for (size_t i = 0; i < 3; ++i) {
    for (const auto* name : {"train_mean", "train_square", "test_mean"}) {
      CHECK(graph.epochs[i].at(name) == plain.epochs[i].at(name));
    }
  }
  // The last batch has a different size, so its step is not captured.
  ValuesFitting smaller;
  smaller.with.train = Batches(points(22), {.batch_size = 4});
  CHECK(smaller.fit({.max_epochs = 3, .graph = true}).epochs[2].at("train_mean") ==
        Approx(points(22).data.mean().item<double>()));
}

TEST_CASE("replicas on simulated or real GPUs produce the same step values as a single device",
          "[gpu]") {
  sconce::test::require_gpu();
  ValuesFitting fitting;
  sconce::nn::DataParallel replicas(fitting.model);
  Trainer trainer({.num_gpus = 1});
  const auto result = trainer.fit(replicas, fitting.optimizer, fitting.with);
  CHECK(result.epochs[0].at("train_mean") ==
        Approx(points(20).data.mean().item<double>()).margin(1e-6));
  ValuesFitting of_cpu(
      [](const torch::Tensor& mean) { return NamedTensors{{"mean", mean.detach().cpu()}}; });
  CHECK_THROWS_WITH(trainer.fit(of_cpu.model, of_cpu.optimizer, of_cpu.with),
                    ContainsSubstring("expected the value 'mean' from the model's training_step on "
                                      "the device of the loss (cuda:0), got it on cpu"));
}

TEST_CASE("step values are read only at the end of an epoch") {
  const auto reads = [](std::function<NamedTensors(const torch::Tensor&)> values) {
    ValuesFitting fitting(std::move(values));
    const sconce::test::Counting counting;
    fitting.fit({.max_epochs = 2});
    return counting.counts().host_reads;
  };
  CHECK(reads(mean_and_square) == reads([](const torch::Tensor&) { return NamedTensors(); }));
}

TEST_CASE(
    "the Trainer rejects step values that are not a single real number or whose names are already "
    "in use") {
  const std::string who = "sconce::Trainer: expected ";
  const auto named = [](const std::string& name) {
    return [name](const torch::Tensor& mean) { return NamedTensors{{name, mean}}; };
  };
  CHECK(refusal_of([](const torch::Tensor&) { return NamedTensors{{"kl", torch::ones({2})}}; }) ==
        who + "a value 'kl' of one real number from the model's training_step, such as the mean " +
            "over the examples, got CPUFloatType of sizes [2]");
  CHECK(refusal_of([](const torch::Tensor&) { return NamedTensors{{"kl", {}}}; }) ==
        who + "a value 'kl' from the model's training_step, got an undefined tensor");
  CHECK(refusal_of([](const torch::Tensor& mean) {
          return NamedTensors{{"kl", mean.to(torch::kMeta)}};
        }) == who +
                  "the value 'kl' from the model's training_step on the device of the loss (cpu), "
                  "got it on meta");
  CHECK(refusal_of([](const torch::Tensor& mean) {
          return NamedTensors{{"kl", mean}, {"kl", mean}};
        }) == who + "values with different names, got two called 'kl'");
  CHECK(refusal_of(named("acc")) ==
        who + "a value with a unique name, got 'acc', which is reserved for a metric");
  CHECK(refusal_of(named("loss")) ==
        who + "a value with a unique name, got 'loss', which is reserved for the loss");
  CHECK_THAT(refusal_of(named("")), ContainsSubstring("non-empty value names"));
  int step = 0;
  CHECK(refusal_of([&](const torch::Tensor& mean) {
          return step++ == 0 ? NamedTensors{{"kl", mean}} : NamedTensors{};
        }) == who + "each step to return the values [kl] (as in the first step), got []");
  step = 0;
  CHECK(refusal_of([&](const torch::Tensor& mean) {
          return step++ == 0 ? NamedTensors{} : NamedTensors{{"kl", mean}};
        }) == who + "each step to return the values [] (as in the first step), got [kl]");
}

TEST_CASE(
    "callbacks can monitor step values, and a monitored value that is missing after an epoch is "
    "reported") {
  using sconce::optim::MetricMode;
  const auto fit = [](const std::string& monitor, bool has_test) {
    ValuesFitting fitting;
    if (!has_test) fitting.with.test.reset();
    EarlyStopping stopping(monitor, {.patience = 1, .mode = MetricMode::min});
    fitting.with.callbacks = {&stopping};
    return fitting.fit({.max_epochs = 5});
  };
  for (const auto* monitor : {"train_mean", "test_square", "val_mean"}) {
    CAPTURE(monitor);
    CHECK(fit(monitor, true).epochs.size() == 2);  // each epoch has the same batches
  }
  const std::string expected =
      "sconce::EarlyStopping: expected monitor to be one of [loss, "
      "train_acc, test_loss, test_acc, train_mean, train_square, "
      "test_mean, test_square], got ";
  CHECK_THROWS_WITH(fit("test_meen", true), ContainsSubstring(expected + "test_meen"));
  CHECK_THROWS_WITH(fit("tset_mean", true),
                    ContainsSubstring("one of [loss, train_acc, test_loss, test_acc], got tset_"));
  CHECK_THROWS_WITH(fit("test_mean", false), ContainsSubstring("[loss, train_acc], got test_mean"));

  ValuesFitting fitting;
  const TempDir folder;
  sconce::Checkpoint checkpoint(folder.path());
  sconce::ModelCheckpoint best(checkpoint, {.monitor = "test_mean", .mode = MetricMode::max});
  sconce::optim::lr_scheduler::ReduceLROnPlateau plateau(fitting.optimizer,
                                                         {.mode = MetricMode::min});
  sconce::PlateauScheduling scheduling(plateau, "train_meen");
  fitting.with.callbacks = {&best};
  fitting.fit();
  CHECK_FALSE(checkpoint.best().empty());
  fitting.with.callbacks = {&scheduling};
  CHECK_THROWS_WITH(fitting.fit(),
                    ContainsSubstring("sconce::PlateauScheduling: expected monitor"));
  const TempDir other;
  sconce::Checkpoint of_wrong(other.path());
  sconce::ModelCheckpoint wrong(of_wrong, {.monitor = "test_meen", .mode = MetricMode::max});
  fitting.with.callbacks = {&wrong};
  CHECK_THROWS_WITH(fitting.fit(), ContainsSubstring("sconce::ModelCheckpoint: expected monitor"));
}

TEST_CASE("a fit resumed mid-epoch restores the sums of its step values") {
  const TempDir folder;
  const auto fit = [&](int64_t stop_after) {
    ValuesFitting fitting;
    int64_t steps = 0;
    sconce::test::StopWhen stopping([&] { return ++steps == stop_after; });
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    fitting.with.callbacks = {&stopping, &saving};
    return fitting.fit({.max_epochs = 2});
  };
  CHECK(fit(2).epochs.empty());
  const auto result = fit(-1);
  ValuesFitting undisturbed;
  const auto expected = undisturbed.fit({.max_epochs = 2});
  for (size_t i = 0; i < 2; ++i) {
    check_values(result.epochs[i]);
    CHECK(result.epochs[i].at("train_mean") == expected.epochs[i].at("train_mean"));
    CHECK(result.epochs[i].at("train_square") == expected.epochs[i].at("train_square"));
  }
}

TEST_CASE("accumulating batches with different target counts matches one large batch") {
  using sconce::amp::Precision;
  const auto precision = GENERATE(Precision::fp32, Precision::fp16);
  const auto clip = GENERATE(0.0, 0.1);
  const sconce::test::Warnings of_fp16_on_a_cpu;
  const auto dataset = with_ignored_targets();
  const auto fit = [&](int64_t batch_size, int accumulate, sconce::Loss loss = {}) {
    return fit_counted(dataset, batch_size,
                       {.max_epochs = 3,
                        .gradient_clip_val = clip,
                        .precision = precision,
                        .accumulate_grad_batches = accumulate,
                        .loss = std::move(loss)});
  };
  const auto accumulated = fit(4, 5), large = fit(20, 1);
  const auto mean = fit(20, 1, torch::nn::functional::cross_entropy);
  // The results differ only in rounding: the unit roundoff is 6e-8 for float32 and 5e-4 for
  // float16.
  const double tolerance = precision == Precision::fp16 ? 5e-3 : 1e-6;
  CHECK(torch::allclose(accumulated.parameters, large.parameters, tolerance, tolerance));
  CHECK(torch::allclose(large.parameters, mean.parameters, tolerance, tolerance));
  for (size_t i = 0; i < 3; ++i) {
    CHECK(accumulated.result.epochs[i].loss ==
          Approx(large.result.epochs[i].loss).epsilon(tolerance));
    CHECK(accumulated.result.epochs[i].examples == 20);
  }
}

TEST_CASE("epoch and test losses are averaged over the counted targets") {
  const auto dataset = with_ignored_targets();
  auto model = linear_with_seed();
  const auto expected =
      torch::nn::functional::cross_entropy(model->forward(dataset.data), dataset.target)
          .item<double>();
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0));
  Trainer trainer({.num_gpus = 0, .loss = over_targets});
  const Batches batches(dataset, {.batch_size = 4});
  const auto epoch = trainer.fit(model, optimizer, batches, batches).epochs[0];
  CHECK(epoch.loss == Approx(expected));
  CHECK(epoch.at("test_loss") == Approx(expected));
  CHECK(trainer.evaluate(model, batches).at("loss") == Approx(expected));
}

TEST_CASE("a step with no counted targets leaves the parameters unchanged") {
  const auto accumulate = GENERATE(1, 2);
  auto dataset = points(8);
  dataset.target.fill_(-100);
  const sconce::test::Warnings of_the_mean_over_nothing;
  const auto fit = fit_counted(dataset, 4, {.accumulate_grad_batches = accumulate});
  CHECK(fit.parameters.equal(flat_parameters(*linear_with_seed())));
}

TEST_CASE(
    "a captured step that returns a count matches an eager step, and the count adds no host "
    "reads") {
  const auto dataset = with_ignored_targets();
  const auto eager = fit_counted(dataset, 4, {.max_epochs = 3});
  const auto graph = fit_counted(dataset, 4, {.max_epochs = 3, .graph = true});
  CHECK(graph.parameters.equal(eager.parameters));
  for (size_t i = 0; i < 3; ++i) {
    CHECK(graph.result.epochs[i].loss == eager.result.epochs[i].loss);
  }
  const auto reads = [&](sconce::Loss loss) {
    const sconce::test::Counting counting;
    fit_counted(points(20), 4, {.accumulate_grad_batches = 2, .loss = std::move(loss)});
    return counting.counts().host_reads;
  };
  CHECK(reads(over_targets) == reads(torch::nn::functional::cross_entropy));
}

TEST_CASE("a fit resumed mid-epoch restores the sum of its counts") {
  const TempDir folder;
  const auto dataset = with_ignored_targets();
  const auto fit = [&](int64_t stop_after) {
    int64_t steps = 0;
    sconce::test::StopWhen stopping([&] { return ++steps == stop_after; });
    sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
    sconce::ModelCheckpoint saving(checkpoint);
    return fit_counted(dataset, 4, {.max_epochs = 2, .accumulate_grad_batches = 2},
                       {&stopping, &saving});
  };
  CHECK(fit(2).result.epochs.empty());
  const auto resumed = fit(-1);
  const auto expected = fit_counted(dataset, 4, {.max_epochs = 2, .accumulate_grad_batches = 2});
  CHECK(resumed.parameters.equal(expected.parameters));
  for (size_t i = 0; i < 2; ++i) {
    CHECK(resumed.result.epochs[i].loss == expected.result.epochs[i].loss);
  }
}

TEST_CASE("the losses and counts from all replicas are summed") {
  const auto fit = [](bool replicated) {
    torch::manual_seed(0);
    const auto model = std::make_shared<TargetsModel>(targets_of);
    sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5));
    const Batches batches(with_ignored_targets(), {.batch_size = 4});
    Trainer trainer({.num_gpus = 0, .metrics = sconce::Metrics()});
    sconce::nn::DataParallel replicas(model, {.device_ids = {torch::kCPU, torch::kCPU}});
    const auto result = replicated ? trainer.fit(replicas, optimizer, batches)
                                   : trainer.fit(model, optimizer, batches);
    return std::pair(result.epochs[0], flat_parameters(*model));
  };
  const auto one = fit(false), two = fit(true);
  CHECK(torch::allclose(two.second, one.second, 1e-6, 1e-6));
  CHECK(two.first.loss == Approx(one.first.loss));
  CHECK(two.first.at("train_mean") == Approx(one.first.at("train_mean")));
}

TEST_CASE(
    "the Trainer rejects counts that are not a single real number and counts that only some steps "
    "return") {
  const std::string who = "sconce::Trainer: expected ";
  CHECK(refusal_of_count(targets_of) == "nothing was thrown");
  CHECK(refusal_of_count([](const Dataset& batch) { return batch.target != -100; }) ==
        who +
            "a count of one real number from the model's training_step, such as (target != "
            "-100).sum(), got CPUBoolType of sizes [4]");
  CHECK(refusal_of_count([](const Dataset& batch) { return targets_of(batch).to(torch::kMeta); }) ==
        who +
            "the count from the model's training_step on the device of the loss (cpu), "
            "got it on meta");
  int step = 0;
  CHECK(refusal_of_count([&](const Dataset& batch) {
          return step++ == 0 ? targets_of(batch) : torch::Tensor();
        }) == who +
                  "each step to return the values [StepOutput::count, mean] (as in the first "
                  "step), got [mean]");
  const auto without_count = [](const torch::Tensor& output, const torch::Tensor& target) {
    return sconce::LossSum{.sum = over_targets(output, target).sum};
  };
  CHECK_THROWS_WITH(fit_counted(points(8), 4, {.loss = without_count}),
                    ContainsSubstring("expected a count from TrainerOptions::loss, got an "
                                      "undefined tensor"));
  CHECK(refusal_of(
            [](const torch::Tensor& mean) { return NamedTensors{{"StepOutput::count", mean}}; }) ==
        who +
            "a value with a unique name, got 'StepOutput::count', which is reserved for the count");
}

TEST_CASE("a loss that ignores some targets is the same on simulated and real GPUs as on the CPU",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto dataset = with_ignored_targets();
  const auto on_gpu = fit_counted(
      dataset, 4, {.num_gpus = 1, .gradient_clip_val = 0.1, .accumulate_grad_batches = 5});
  const auto on_cpu = fit_counted(dataset, 20, {.gradient_clip_val = 0.1});
  CHECK(torch::allclose(on_gpu.parameters.cpu(), on_cpu.parameters, 1e-5, 1e-5));
  CHECK(on_gpu.result.epochs[0].loss == Approx(on_cpu.result.epochs[0].loss));
}

TEST_CASE(
    "with several test sets, step values are prefixed with their test set's name, and val_ is not "
    "an alias for test_") {
  ValuesFitting fitting;
  const Batches a(points(6, /*seed=*/2), {.batch_size = 4});
  const Batches b(points(10, /*seed=*/3), {.batch_size = 4});
  fitting.with = {.train = fitting.with.train, .test = {{"val", a}, {"hard", b}}};
  EarlyStopping stopping("val_loss"), on_hard("hard_acc", {.name = "on_hard"});
  const TempDir folder;
  sconce::Checkpoint checkpoint(folder.path());
  sconce::ModelCheckpoint best(checkpoint);
  fitting.with.callbacks = {&stopping, &on_hard, &best};
  const auto epoch = fitting.fit().epochs[0];
  Trainer trainer({.num_gpus = 0});
  const auto of_a = trainer.evaluate(fitting.model, a), of_b = trainer.evaluate(fitting.model, b);
  for (const auto* name : {"loss", "acc", "mean", "square"}) {
    CHECK(epoch.at(std::string("val_") + name) == of_a.at(name));
    CHECK(epoch.at(std::string("hard_") + name) == of_b.at(name));
  }
  CHECK_FALSE(epoch.contains("test_loss"));
  CHECK_FALSE(checkpoint.best().empty());  // by val_acc

  EarlyStopping wrong("val_los", {.mode = sconce::optim::MetricMode::min});
  fitting.with.test = {{"val", a}, {"test", b}};
  fitting.with.callbacks = {&wrong};
  CHECK_THROWS_WITH(fitting.fit(), ContainsSubstring("got val_los"));
  fitting.with.test = {{"hard", b}};
  EarlyStopping of_val("val_loss");
  fitting.with.callbacks = {&of_val};
  CHECK_THROWS_WITH(fitting.fit(), ContainsSubstring("one of [loss, train_acc, hard_loss, "
                                                     "hard_acc], got val_loss"));
}

TEST_CASE("the Trainer rejects test sets without batches or without a unique name") {
  ValuesFitting fitting;
  const Batches a(points(6), {.batch_size = 4});
  const auto refusal = [&](sconce::TestSets test) {
    fitting.with.test = std::move(test);
    return sconce::test::error_of([&] { fitting.fit(); });
  };
  const std::string who = "sconce::Trainer::fit: expected ";
  CHECK(refusal({{"val", a}, {"val", a}}) ==
        who + "test sets with different names, got two called 'val'");
  CHECK(refusal({{"", a}}) == who + "test sets with names such as 'val', got ''");
  CHECK(refusal({{"train", a}}) == who + "test sets with names such as 'val', got 'train'");
  CHECK(refusal({{"val", a}, {"hard", Batches(points(0), {})}}) == who + "hard data, got no batch");
  CHECK(refusal({}) == "nothing was thrown");
  CHECK(refusal(std::nullopt) == "nothing was thrown");
  CHECK(refusal(std::optional<sconce::AnyBatches>(a)) == "nothing was thrown");
}
