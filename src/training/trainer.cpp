#include "sconce/training/trainer.hpp"

#include <ATen/record_function.h>
#include <torch/nn/functional/loss.h>

#include <cmath>

#include "host_call.hpp"
#include "resolve_device.hpp"
#include "training/fit_checks.hpp"
#include "training/fit_loop.hpp"
#include "training/fit_metrics.hpp"
#include "training/run_scope.hpp"
#include "training/test_model.hpp"
#include "training/train_step.hpp"

namespace sconce {

namespace {

torch::Device choose_device(const TrainerOptions& options) {
  if (options.device) {
    TORCH_CHECK(!options.num_gpus,
                "sconce::Trainer: expected only one of num_gpus and device, got num_gpus ",
                *options.num_gpus, " and device ", *options.device);
    return resolve_device(*options.device, "sconce::Trainer");
  }
  if (!options.num_gpus) return options.process_group.device();
  TORCH_CHECK(*options.num_gpus == 0 || *options.num_gpus == 1,
              "sconce::Trainer: expected num_gpus 0 or 1 (a Trainer uses one device), got ",
              *options.num_gpus);
  if (*options.num_gpus > num_gpus()) {
    TORCH_WARN("sconce::Trainer: 1 GPU requested, none found: using the CPU");
  }
  if (*options.num_gpus == 0 || num_gpus() == 0) return cpu();
  return gpu(options.process_group.local_rank() % num_gpus());  // one GPU per rank
}

TrainerOptions with_device(TrainerOptions options) {
  const auto device = choose_device(options);
  options.num_gpus.reset();
  options.device = device;
  options.graph |= options.compiler != nullptr;
  return options;
}

void check_options(const TrainerOptions& options) {
  TORCH_CHECK(options.max_epochs >= 1,
              "sconce::Trainer: expected max_epochs to be at least 1, got ", options.max_epochs);
  TORCH_CHECK(!options.max_time || options.max_time->count() > 0,
              "sconce::Trainer: expected max_time to be above 0 s, got ",
              options.max_time ? options.max_time->count() : 0, " s");
  TORCH_CHECK(std::isfinite(options.gradient_clip_val) && options.gradient_clip_val >= 0,
              "sconce::Trainer: expected gradient_clip_val to be at least 0, got ",
              options.gradient_clip_val);
  TORCH_CHECK(options.accumulate_grad_batches >= 1,
              "sconce::Trainer: expected accumulate_grad_batches to be at least 1, got ",
              options.accumulate_grad_batches);
  TORCH_CHECK(!options.graph || options.accumulate_grad_batches == 1,
              "sconce::Trainer: expected accumulate_grad_batches to be 1 with ",
              capturing_option(options), ", got ", options.accumulate_grad_batches);
  TORCH_CHECK(options.compiler == nullptr || options.device->is_cpu(),
              "sconce::Trainer: expected a CPU device when compiler is set, got ", *options.device);
  TORCH_CHECK(!options.graph || options.device->is_cpu() || options.process_group.world_size() == 1,
              "sconce::Trainer: expected a single-process group when graph is set on a GPU, got a "
              "group of ",
              options.process_group.world_size());
  if (options.metrics) check_metrics(*options.metrics);
  if (options.precision == amp::Precision::fp16 && options.device->is_cpu() &&
      options.process_group.rank() == 0) {
    TORCH_WARN(
        "sconce::Trainer: fp16 on a CPU takes several times as long as fp32 on most CPUs; fp32 is "
        "faster, and so is bf16 on CPUs with AVX512-BF16 or AMX");
  }
}

}  // namespace

Trainer::Trainer(TrainerOptions options)
    : options_(with_device(std::move(options))),
      precision_(options_.precision, *options_.device),
      loss_(options_.loss ? options_.loss : Loss(torch::nn::functional::cross_entropy)) {
  check_options(options_);
}

FitResult Trainer::fit_model(const detail::ModelSteps& model, torch::optim::Optimizer& optimizer,
                             const FitData& data) {
  detail::check_not_capturing("sconce::Trainer::fit");
  return FitLoop(options_, precision_, model, optimizer, data, "sconce::Trainer::fit").run();
}

EpochMetrics Trainer::fit_model_epoch(const detail::ModelSteps& model,
                                      torch::optim::Optimizer& optimizer, const AnyBatches& train) {
  detail::check_not_capturing("sconce::Trainer::fit_epoch");
  const FitData data{.train = train};
  return FitLoop(options_, precision_, model, optimizer, data, "sconce::Trainer::fit_epoch")
      .run_epoch(epoch_step_);
}

MetricValues Trainer::evaluate_model(const detail::ModelSteps& model, const AnyBatches& batches) {
  detail::check_not_capturing("sconce::Trainer::evaluate");
  check_evaluation(options_, model, batches, model.test_without_output,
                   "sconce::Trainer::evaluate");
  const Metrics metrics = metrics_of(options_, model);
  RunScope run(metrics);
  auto values = test_model(options_, precision_, metrics, model, batches);
  run.close();
  return values;
}

void Trainer::predict_model(const detail::ModelSteps& model, const AnyBatches& batches,
                            const std::function<void(const torch::Tensor& output)>& use) {
  RECORD_USER_SCOPE("predict");
  constexpr auto caller = "sconce::Trainer::predict";
  detail::check_not_capturing(caller);
  TORCH_CHECK(use, caller, ": expected a function, got an empty std::function");
  check_evaluation(options_, model, batches, /*without_output=*/nullptr, caller);
  const EvaluationScope scope(options_, precision_, model, batches, caller);
  scope.for_each_batch({}, [&](const AnyBatch& batch) {
    const auto output = model.predict(batch);
    const amp::AutocastGuard off(device().type(), {.enabled = false});
    use(output);
  });
}

}  // namespace sconce
