// Creates the objects for a script.
#include <torch/nn/functional.h>

#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/weight_averaging.hpp"
#include "trainer_scripts/optimizers.hpp"
#include "trainer_scripts/world.hpp"

namespace trainer_scripts {

namespace {

namespace optim = sconce::optim;
namespace lr_scheduler = sconce::optim::lr_scheduler;
using sconce::Fit;
using sconce::optim::MetricMode;

sconce::data::Dataset rows(int64_t count, int64_t first, int64_t seed) {
  const auto places = torch::arange(count * features) + first * features;
  const auto whole = (places * 7919 + seed * 104729).remainder(2003) - 1001;
  const auto data = (whole.to(torch::kDouble) / 512).to(torch::kFloat).view({count, features});
  const auto index = torch::arange(count) + first;
  data.select(1, 0).copy_(index.to(torch::kFloat) / 64);
  return {data, (index * 7 + seed).remainder(classes)};
}

// Sums the outputs for each class.
struct Spread : sconce::metrics::Metric {
  Spread() : Metric(classes) {}
  void update(const torch::Tensor& preds, const torch::Tensor&) override {
    add(preds.sum(0, /*keepdim=*/false, torch::kDouble));
  }
  torch::Tensor compute(const torch::Tensor& sums) const override { return sums.clone(); }
  using Metric::compute;
};

std::shared_ptr<sconce::metrics::Metric> make_metric(const std::string& name) {
  using namespace sconce::metrics;
  if (name == "acc") return std::make_shared<Accuracy>();
  if (name == "f1") {
    return std::make_shared<F1Score>(
        ClassificationOptions{.num_classes = classes, .average = Average::macro});
  }
  if (name == "cells") return std::make_shared<ConfusionMatrix>(ConfusionMatrixOptions{classes});
  return std::make_shared<Spread>();
}

sconce::Metrics make_metrics(const json& names) {
  sconce::Metrics metrics;
  for (const std::string name : names) metrics.emplace_back(name, make_metric(name));
  return metrics;
}

TrainerOf make_trainer(const json& spec, const sconce::Metrics& metrics) {
  sconce::TrainerOptions options = {
      .max_epochs = spec.at("epochs"),
      .num_gpus = 0,
      .gradient_clip_val = spec.value("clip", 0.0),
      .accumulate_grad_batches = spec.value("accumulate", 1),
      .fast_dev_run = spec.value("fast", false),
  };
  const std::string precision = spec.value("precision", "fp32");
  if (precision == "bf16") options.precision = sconce::amp::Precision::bf16;
  if (precision == "fp16") options.precision = sconce::amp::Precision::fp16;
  if (spec.value("loss", "") == "mse") {
    options.loss = [](const torch::Tensor& output, const torch::Tensor& target) {
      return torch::nn::functional::mse_loss(output.select(1, 0), target.to(output.dtype()));
    };
  }
  options.metrics = metrics;
  return {metrics, std::make_unique<sconce::Trainer>(options)};
}

SchedulerOf make_scheduler(const std::string& kind, torch::optim::Optimizer& optimizer) {
  using namespace lr_scheduler;
  if (kind == "plateau") {
    auto made = std::make_unique<ReduceLROnPlateau>(
        optimizer, ReduceLROnPlateauOptions{.mode = MetricMode::min, .factor = 0.5, .patience = 0});
    auto* plateau = made.get();
    return {std::move(made), nullptr, plateau};
  }
  std::unique_ptr<LRScheduler> made;
  if (kind == "step") made = std::make_unique<StepLR>(optimizer, 2, 0.5);
  if (kind == "exponential") made = std::make_unique<ExponentialLR>(optimizer, 0.875);
  if (kind == "cosine") made = std::make_unique<CosineAnnealingLR>(optimizer, 5, 0.001);
  if (kind == "linear") made = std::make_unique<LinearLR>(optimizer);
  if (kind == "restarts") {
    made = std::make_unique<CosineAnnealingWarmRestarts>(optimizer, 2, 2, 0.001);
  }
  if (kind == "constant") made = std::make_unique<ConstantLR>(optimizer, 0.5, 3);
  if (kind == "polynomial") made = std::make_unique<PolynomialLR>(optimizer, 6, 1.5);
  auto* by_steps = made.get();
  return {std::move(made), by_steps, nullptr};
}

// Wraps a callback and saves its state under a different name, so that a fit can use two callbacks
// of the same class.
template <class Base>
struct Named : Base {
  template <class... A>
  explicit Named(std::string given, A&&... arguments)
      : Base(std::forward<A>(arguments)...), given_name(std::move(given)) {}
  std::string name() const override { return given_name; }
  std::string given_name;
};

struct Recorder : sconce::TrainerCallback {
  Recorder(World& w, json s, size_t i) : world(w), spec(std::move(s)), index(i) {}
  void setup(Fit& fit) override { hook("setup", fit); }
  void load(Fit& fit) override { hook("load", fit); }
  void on_fit_start(Fit& fit) override { hook("on_fit_start", fit); }
  void on_fit_end(Fit& fit) override { hook("on_fit_end", fit); }
  void on_before_optimizer_step(Fit& fit) override { hook("on_before_optimizer_step", fit); }
  void on_after_optimizer_step(Fit& fit) override { hook("on_after_optimizer_step", fit); }
  void on_epoch_end(Fit& fit) override { hook("on_epoch_end", fit); }
  void on_test_start(Fit& fit) override { hook("on_test_start", fit); }
  void on_test_end(Fit& fit) override { hook("on_test_end", fit); }
  bool should_save(const Fit& fit) const override {
    const int64_t every = spec.value("every_n_train_steps", 0);
    return every > 0 && fit.steps_in(fit.batch) % every == 0;
  }
  void save(Fit& fit) override { hook("save", fit); }

  void hook(const std::string& name, Fit& fit) {
    world.in_hook(spec, index, name, ++calls[name], fit);
  }

  World& world;
  json spec;
  size_t index;
  std::map<std::string, int64_t> calls = {};
};

}  // namespace

World::World(json script, Trace& trace, std::filesystem::path folder)
    : script_(std::move(script)), trace_(trace), folder_(std::move(folder)) {
  const int64_t seed = script_.at("seed");
  train_ = rows(script_.at("rows"), 0, seed);
  test_ = rows(script_.at("test_rows"), 100, seed);
}

void World::build(uint64_t seed, bool resume) {
  callbacks_.clear();  // destroyed before the objects that they refer to
  schedulers_.clear();
  averages_.clear();
  optimizers_.clear();
  models_.clear();
  trainers_.clear();
  loaders_.clear();
  torch::manual_seed(seed);
  for (const auto& spec : script_.at("models")) {
    models_.emplace_back(spec.at("kind").get<std::string>(), spec.value("dropout", 0.0), trace_);
  }
  build_optimizers();
  for (const auto& spec : script_.at("averages")) {
    averages_.emplace_back(
        *models_.at(spec.at("model")),
        optim::ExponentialMovingAverageOptions{.decay = 0.75, .use_buffers = spec.at("buffers")});
  }
  sconce::Metrics shared;
  for (const auto& spec : script_.at("trainers")) {
    if (shared.empty() || !spec.value("shares", false)) shared = make_metrics(spec.at("metrics"));
    trainers_.push_back(make_trainer(spec, shared));
  }
  for (const auto& spec : script_.at("loaders")) {
    loaders_.push_back(make_loader(spec, spec.at("rows") == "train" ? train_ : test_));
  }
  const size_t folders = script_.value("folders", size_t{0});
  checkpoints_.resize(folders);
  for (size_t i = 0; i < folders; ++i) {
    checkpoints_[i].reset();  // the checkpoint holds a lock
    checkpoints_[i].emplace(folder_ / std::to_string(i),
                            sconce::CheckpointOptions{.resume = resume});
  }
  build_callbacks();
}

void World::build_optimizers() {
  for (const auto& spec : script_.at("optimizers")) {
    const size_t model = spec.at("model");
    optimizers_.push_back({spec, model, make_optimizer(spec, first_groups(spec, *models_[model]))});
  }
  for (const auto& spec : script_.at("schedulers")) {
    auto& optimizer = *optimizers_.at(spec.at("optimizer")).optimizer;
    schedulers_.push_back(make_scheduler(spec.at("kind"), optimizer));
  }
}

void World::build_callbacks() {
  for (const auto& spec : script_.at("callbacks")) {
    const std::string kind = spec.at("kind");
    const std::string name = spec.value("name", "");
    const std::string monitor = spec.value("monitor", "");
    const auto mode = spec.value("mode", "min") == "min" ? MetricMode::min : MetricMode::max;
    std::unique_ptr<sconce::TrainerCallback> made;
    if (kind == "recorder") made = std::make_unique<Recorder>(*this, spec, callbacks_.size());
    if (kind == "early_stopping") {
      made = std::make_unique<Named<sconce::EarlyStopping>>(
          name, monitor,
          sconce::EarlyStoppingOptions{.patience = spec.value("patience", 0), .mode = mode});
    }
    if (kind == "averaging") {
      made = std::make_unique<Named<sconce::WeightAveraging>>(name, averages_.at(spec.at("of")));
    }
    if (kind == "scheduling") {
      const auto& of = schedulers_.at(spec.at("of"));
      if (of.by_metric != nullptr) {
        made = std::make_unique<Named<sconce::PlateauScheduling>>(name, *of.by_metric, monitor);
      } else {
        const bool by_steps = spec.at("interval") == "step";
        made = std::make_unique<Named<sconce::LRScheduling>>(
            name, *of.by_steps,
            by_steps ? sconce::SchedulerInterval::step : sconce::SchedulerInterval::epoch);
      }
    }
    if (kind == "checkpoint") {
      made = std::make_unique<sconce::ModelCheckpoint>(
          *checkpoints_.at(spec.at("of")),
          sconce::ModelCheckpointOptions{
              .monitor = monitor,
              .mode = mode,
              .every_n_train_steps = spec.value("every_n_train_steps", 0)});
    }
    callbacks_.push_back(std::move(made));  // null if the script specifies null
  }
}

}  // namespace trainer_scripts
