#pragma once

// The training runs that wrote the checkpoints in this folder, with the current sconce names.
// README.md says which revision of this file contains the names from sconce 0.2.
//
// The first part of a training run was computed on a different CPU than the rest, so every CPU must
// produce the same bits, regardless of whether its kernels sum 8 or 16 numbers at a time and
// whether they fuse a product with a sum. Therefore, no tensor has more than two elements, and
// gradients do not depend on the parameters. The data and options have so few significant bits that
// every product is exact, so fusing a product with a sum does not change the result.

#include <torch/nn/module.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/metrics/regression.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/training/weight_averaging.hpp"

namespace sconce::test::of_0_2 {

using optim::lr_scheduler::CosineAnnealingLR;
using optim::lr_scheduler::ExponentialLR;
using optim::lr_scheduler::GroupLRScheduler;
using optim::lr_scheduler::LambdaLR;
using optim::lr_scheduler::LinearLR;
using optim::lr_scheduler::LinearLROptions;
using optim::lr_scheduler::MultiStepLR;
using optim::lr_scheduler::OneCycleLR;
using optim::lr_scheduler::OneCycleLROptions;
using optim::lr_scheduler::ReduceLROnPlateau;
using optim::lr_scheduler::ReduceLROnPlateauOptions;
using optim::lr_scheduler::SequentialLR;
using optim::lr_scheduler::StepLR;

// A linear model with dropout that counts its training batches.
struct Line : torch::nn::Module {
  StepOutput training_step(const data::Dataset& batch) {
    auto x = batch.data;
    if (is_training()) {
      x = x * torch::rand_like(x).lt(0.5);
      batches.add_(1);
    }
    const auto output = weight * x + bias;
    return {(output * batch.target).mean(), output, batch.target};
  }

  torch::Tensor weight = register_parameter("weight", torch::ones(1));
  torch::Tensor bias = register_parameter("bias", torch::zeros(1));
  torch::Tensor batches = register_buffer("batches", torch::zeros({}, torch::kLong));
};

inline data::Batches rows(int64_t count, bool shuffle) {
  const auto i = torch::arange(count, torch::kFloat).unsqueeze(1);
  return data::Batches({.data = i.remainder(5) / 4 - 1, .target = i.remainder(3) / 2 - 1},
                       {.batch_size = 2, .shuffle = shuffle, .seed = 3});
}

// A model, an optimizer, and the other objects used in a fit with 4 epochs of 4 batches each.
struct Training {
  template <class O, class Options>
  void optimize(const Options& defaults) {
    using Group = torch::optim::OptimizerParamGroup;
    const std::vector<Group> groups = {Group({model->weight}), Group({model->bias})};
    optimizer = std::make_unique<O>(groups, defaults);
    optimizer->param_groups()[1].options().set_lr(0.25);
  }
  void sgd() {
    optimize<optim::SGD>(torch::optim::SGDOptions(0.125).momentum(0.5).dampening(0.25));
  }
  void adam(bool amsgrad = false) {
    optimize<optim::Adam>(torch::optim::AdamOptions(0.125).betas({0.5, 0.75}).amsgrad(amsgrad));
  }
  void adamw() {
    optimize<optim::AdamW>(torch::optim::AdamWOptions(0.125).betas({0.5, 0.75}).weight_decay(0.25));
  }

  // Keeps an object alive for the duration of the training run.
  template <class T, class... Args>
  std::shared_ptr<T> keep(Args&&... args) {
    auto object = std::make_shared<T>(std::forward<Args>(args)...);
    kept.push_back(object);
    return object;
  }
  template <class Callback, class... Args>
  void call(Args&&... args) {
    callbacks.push_back(keep<Callback>(std::forward<Args>(args)...).get());
  }
  template <class Scheduler, class... Args>
  void schedule(SchedulerInterval interval, Args&&... args) {
    call<LRScheduling>(*keep<Scheduler>(*optimizer, std::forward<Args>(args)...), interval);
  }
  // The monitored loss decreases, so with MetricMode::max, no epoch after the first counts as an
  // improvement.
  void stop_early(int patience) {
    call<EarlyStopping>("test_loss",
                        EarlyStoppingOptions{.patience = patience, .mode = optim::MetricMode::max});
  }
  void average() {
    averages = keep<optim::ExponentialMovingAverage>(
        *model, optim::ExponentialMovingAverageOptions{.decay = 0.75});
    call<WeightAveraging>(*averages);
  }

  FitResult fit(const std::vector<TrainerCallback*>& others) {
    Trainer trainer(options);
    if (trainer.scaler().is_enabled()) {  // makes the scale grow every five steps
      auto state = trainer.scaler().state_dict().toGenericDict();
      state.insert_or_assign("scale", 0x1p100);
      state.insert_or_assign("growth_interval", int64_t{5});
      trainer.scaler().load_state_dict(state);
    }
    FitData data = {.train = rows(8, /*shuffle=*/true), .test = rows(4, /*shuffle=*/false)};
    for (auto* callback : callbacks) data.callbacks.push_back(callback);
    for (auto* callback : others) data.callbacks.push_back(callback);
    auto result = trainer.fit(model, *optimizer, data);
    scaler = trainer.scaler().state_dict();
    return result;
  }

  std::shared_ptr<Line> model = std::make_shared<Line>();
  TrainerOptions options = {
      .max_epochs = 4,
      .num_gpus = 0,
      .metrics = Metrics{{"mse", std::make_shared<metrics::MeanSquaredError>()}}};
  std::unique_ptr<torch::optim::Optimizer> optimizer = {};
  std::shared_ptr<optim::ExponentialMovingAverage> averages = {};
  std::vector<TrainerCallback*> callbacks = {};
  std::vector<std::shared_ptr<void>> kept = {};
  c10::IValue scaler = {};  // the scaler's state after the fit
};

// Returns the fit's results (excluding times) and all values in the run's final state.
inline std::vector<double> numbers_of(const Training& training, const FitResult& result) {
  std::vector<double> numbers;
  for (const auto& epoch : result.epochs) {
    numbers.push_back(epoch.loss);
    for (const auto& [name, value] : epoch.metrics) numbers.push_back(value);
  }
  const auto add = [&](const torch::Tensor& tensor) { numbers.push_back(tensor.item<double>()); };
  for (const auto& parameter : training.model->parameters()) add(parameter);
  add(training.model->batches);
  if (training.averages) {
    for (const auto& average : training.averages->state_dict()) add(average.value());
  }
  if (const auto& scaler = training.scaler.toGenericDict(); !scaler.empty()) {
    numbers.push_back(scaler.at("scale").toDouble());
  }
  for (const auto& group : training.optimizer->param_groups()) {
    numbers.push_back(group.options().get_lr());
  }
  return numbers;
}

// Writes one value per line in hexadecimal notation, so that no precision is lost.
inline void write_numbers(const std::string& file, const std::vector<double>& numbers) {
  std::ofstream out(file);
  out << std::hexfloat;
  for (const double number : numbers) out << number << "\n";
}

inline std::vector<double> read_numbers(const std::string& file) {
  std::ifstream in(file);
  std::vector<double> numbers;
  for (std::string line; std::getline(in, line);) numbers.push_back(std::stod(line));
  return numbers;
}

// Functions that set up the training runs, keyed by folder name.
inline const std::map<std::string, std::function<void(Training&)>>& trainings() {
  constexpr auto by_epoch = SchedulerInterval::epoch;
  constexpr auto by_step = SchedulerInterval::step;
  static const std::map<std::string, std::function<void(Training&)>> all = {
      {"SGD_LambdaLR",
       [](Training& t) {
         t.sgd();
         t.schedule<LambdaLR>(by_epoch, LambdaLR::Function([](int64_t epoch) {
                                return epoch % 2 == 0 ? 1.0 : 0.5;
                              }));
       }},
      {"Adam_StepLR",
       [](Training& t) {
         t.adam();
         t.schedule<StepLR>(by_step, /*step_size=*/3, /*gamma=*/0.5);
         t.average();
       }},
      {"AdamW_MultiStepLR",
       [](Training& t) {
         t.adamw();
         t.schedule<MultiStepLR>(by_epoch, std::vector<int64_t>{1, 3}, /*gamma=*/0.5);
       }},
      {"SGD_ExponentialLR",
       [](Training& t) {
         t.sgd();
         t.schedule<ExponentialLR>(by_epoch, /*gamma=*/0.5);
         t.stop_early(/*patience=*/2);
       }},
      {"Adam_CosineAnnealingLR",
       [](Training& t) {
         t.adam(/*amsgrad=*/true);
         t.schedule<CosineAnnealingLR>(by_epoch, /*T_max=*/4);
       }},
      {"AdamW_LinearLR",
       [](Training& t) {
         t.adamw();
         t.options.precision = decltype(t.options.precision)::fp16;
         t.schedule<LinearLR>(by_epoch, LinearLROptions{.start_factor = 0.25, .total_iters = 3});
       }},
      {"SGD_OneCycleLR",
       [](Training& t) {
         t.sgd();
         t.options.accumulate_grad_batches = 2;
         t.schedule<OneCycleLR>(
             by_step, /*max_lr=*/0.5,
             OneCycleLROptions{.total_steps = 16,
                               .pct_start = 9.0 / 16,  // the first phase has 8 steps
                               .anneal_strategy = optim::lr_scheduler::AnnealStrategy::linear,
                               .base_momentum = 0.5,
                               .max_momentum = 0.75,
                               .div_factor = 4});
       }},
      {"Adam_SequentialLR",
       [](Training& t) {
         t.adam();
         t.schedule<SequentialLR>(
             by_epoch,
             std::vector<std::shared_ptr<GroupLRScheduler>>{
                 t.keep<LinearLR>(*t.optimizer,
                                  LinearLROptions{.start_factor = 0.5, .total_iters = 2}),
                 t.keep<ExponentialLR>(*t.optimizer, 0.5)},
             std::vector<int64_t>{2});
       }},
      {"AdamW_ReduceLROnPlateau",
       [](Training& t) {
         t.adamw();
         t.average();
         auto& scheduler = *t.keep<ReduceLROnPlateau>(
             *t.optimizer, ReduceLROnPlateauOptions{
                               .mode = optim::MetricMode::max, .factor = 0.5, .patience = 1});
         t.call<PlateauScheduling>(scheduler);
         t.stop_early(/*patience=*/5);
       }},
  };
  return all;
}

}  // namespace sconce::test::of_0_2
