// Tests the thread-safe operations on optimizers, schedulers, averages, and scalers.

#include <memory>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/amp/mixed_precision.hpp"
#include "sconce/optim/adadelta.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/adamax.hpp"
#include "sconce/optim/cyclic_lr.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/reduce_lr_on_plateau.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/optim/swa_utils.hpp"
#include "sconce/optim/warm_restarts.hpp"
#include "support/at_once.hpp"
#include "support/same_bytes.hpp"

using sconce::test::check_at_once;
using sconce::test::same_bytes;
using sconce::test::Use;

namespace {

namespace optim = sconce::optim;

torch::Tensor parameter_with_gradient() {
  auto parameter = torch::ones({3}).requires_grad_();
  parameter.mutable_grad() = torch::ones({3});
  return parameter;
}

template <class Class, class Options>
Use reading(const char* what) {
  const auto optimizer =
      std::make_shared<Class>(std::vector{parameter_with_gradient()}, Options(0.1));
  optimizer->step();
  torch::serialize::OutputArchive first;  // creates a static LibTorch string, unseen by TSan
  optimizer->save(first);
  const optim::Optimizer& read = *optimizer;
  const auto dict = [](const c10::IValue& value) { return value.toGenericDict(); };
  return {what, [=, &read] {
            torch::serialize::OutputArchive archive;
            optimizer->save(archive);
            return dict(read.state_dict()).size() == 2 && read.options().isList() &&
                   read.kernels() != optim::Kernels::automatic && read.is_capturable() &&
                   read.group_values() != nullptr &&
                   read.step_supports_amp_scaling() == (read.kernels() == optim::Kernels::fused);
          }};
}

template <class Class, class Options>
Use stepping(const char* what) {
  return {what, [] {
            const auto parameter = parameter_with_gradient();
            Class optimizer(std::vector{parameter}, Options(0.1));
            optim::lr_scheduler::StepLR scheduler(optimizer, 1);
            optimizer.step();
            scheduler.step();
            optimizer.zero_grad();
            return parameter[0].template item<float>() < 1;
          }};
}

Use reading(const char* what, const std::shared_ptr<optim::lr_scheduler::Scheduler>& scheduler) {
  const optim::lr_scheduler::Scheduler* read = scheduler.get();
  const size_t size = read->state_dict().toGenericDict().size();
  return {what, [scheduler, read, size] {
            return read->state_dict().toGenericDict().size() == size &&
                   read->options().isGenericDict() && read->get_last_lr().size() == 1 &&
                   read->last_epoch() == 0;
          }};
}

}  // namespace

TEST_CASE("four threads read the same optimizer concurrently") {
  check_at_once({
      reading<optim::SGD, torch::optim::SGDOptions>("SGD"),
      reading<optim::Adam, torch::optim::AdamOptions>("Adam"),
      reading<optim::AdamW, torch::optim::AdamWOptions>("AdamW"),
      reading<optim::Adagrad, torch::optim::AdagradOptions>("Adagrad"),
      reading<optim::RMSprop, torch::optim::RMSpropOptions>("RMSprop"),
      reading<optim::Adadelta, optim::AdadeltaOptions>("Adadelta"),
      reading<optim::Adamax, optim::AdamaxOptions>("Adamax"),
      reading<optim::NAdam, optim::NAdamOptions>("NAdam"),
  });
}

TEST_CASE("four threads step different optimizers and schedulers concurrently") {
  check_at_once({
      stepping<optim::SGD, torch::optim::SGDOptions>("SGD"),
      stepping<optim::Adam, torch::optim::AdamOptions>("Adam"),
      stepping<optim::NAdam, optim::NAdamOptions>("NAdam"),
      stepping<torch::optim::SGD, torch::optim::SGDOptions>("LibTorch's SGD"),
  });
}

TEST_CASE("four threads read the same scheduler concurrently") {
  using namespace optim::lr_scheduler;
  std::vector<std::unique_ptr<optim::SGD>> optimizers;
  const auto next = [&]() -> optim::SGD& {
    return *optimizers.emplace_back(std::make_unique<optim::SGD>(
        std::vector{parameter_with_gradient()}, torch::optim::SGDOptions(0.1).momentum(0.9)));
  };
  const auto half = [](int64_t) { return 0.5; };
  auto& of_sequence = next();
  const std::vector<std::shared_ptr<GroupLRScheduler>> parts = {
      std::make_shared<ConstantLR>(of_sequence), std::make_shared<ExponentialLR>(of_sequence, 0.9)};
  check_at_once({
      reading("LambdaLR", std::make_shared<LambdaLR>(next(), half)),
      reading("MultiplicativeLR", std::make_shared<MultiplicativeLR>(next(), half)),
      reading("StepLR", std::make_shared<StepLR>(next(), 2)),
      reading("MultiStepLR", std::make_shared<MultiStepLR>(next(), std::vector<int64_t>{2, 4})),
      reading("ExponentialLR", std::make_shared<ExponentialLR>(next(), 0.9)),
      reading("CosineAnnealingLR", std::make_shared<CosineAnnealingLR>(next(), 5)),
      reading("ConstantLR", std::make_shared<ConstantLR>(next())),
      reading("PolynomialLR", std::make_shared<PolynomialLR>(next())),
      reading("LinearLR", std::make_shared<LinearLR>(next())),
      reading("SequentialLR",
              std::make_shared<SequentialLR>(of_sequence, parts, std::vector<int64_t>{2})),
      reading("OneCycleLR",
              std::make_shared<OneCycleLR>(next(), 1.0, OneCycleLROptions{.total_steps = 10})),
      reading("CyclicLR", std::make_shared<CyclicLR>(next(), 0.1, 1.0)),
      reading("CosineAnnealingWarmRestarts",
              std::make_shared<CosineAnnealingWarmRestarts>(next(), 5)),
      reading("ReduceLROnPlateau", std::make_shared<ReduceLROnPlateau>(next())),
      reading("SWALR", std::make_shared<optim::swa_utils::SWALR>(next(), 0.05)),
  });
}

TEST_CASE("four threads read the same averaged weights and the same scaler concurrently") {
  torch::nn::Linear layer(2, 2);
  optim::ExponentialMovingAverage ema(*layer);
  ema.update();
  sconce::amp::GradScaler scaler({.device = torch::kCPU, .init_scale = 8.0});
  (void)scaler.scale(torch::ones({}));
  const sconce::amp::MixedPrecision precision(sconce::amp::Precision::bf16, torch::kCPU);
  check_at_once({
      {"ExponentialMovingAverage",
       [&] { return std::as_const(ema).state_dict().size() == 3 && ema.n_averaged() == 1; }},
      {"GradScaler",
       [&] {
         const auto& read = scaler;
         return read.get_scale() == 8 && read.is_enabled() && read.get_growth_factor() == 2 &&
                read.get_backoff_factor() == 0.5 && read.get_growth_interval() == 2000 &&
                read.state_dict().toGenericDict().size() == 5;
       }},
      {"MixedPrecision",
       [&] {
         const auto autocast = precision.autocast();
         return precision.precision() == sconce::amp::Precision::bf16;
       }},
  });
}
