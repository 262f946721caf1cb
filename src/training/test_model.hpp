#pragma once

#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "sconce/amp/autocast.hpp"
#include "sconce/amp/mixed_precision.hpp"
#include "sconce/backends.hpp"
#include "sconce/nn/mode_guard.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/metrics.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

/// Returns the next batch on the device. `index` is its number in the epoch.
AnyBatch next_batch(const AnyBatches::Next& next, torch::Device device, int64_t index);

/// The scope of an evaluation or a prediction: the precision, no gradients, and the model in
/// evaluation mode with the buffers of rank 0.
class EvaluationScope {
 public:
  /// Begins it. `who` names the caller.
  /// @throw c10::Error if there are no batches in a group of one.
  EvaluationScope(const TrainerOptions& options, const amp::MixedPrecision& precision,
                  const detail::ModelSteps& model, const AnyBatches& batches, const char* who);

  /// Calls `step` with each batch of `of_epoch` or of the next epoch, on the device.
  void for_each_batch(std::optional<int64_t> of_epoch,
                      const std::function<void(const AnyBatch&)>& step) const;

 private:
  const TrainerOptions& options_;
  const AnyBatches& batches_;
  at::NoGradGuard no_grad_;
  nn::ModeGuard restore_;
  backends::FlagsGuard settings_;
  amp::AutocastGuard autocast_;
};

/// Does what `Trainer::evaluate` does, over the batches of `of_epoch` or the next epoch, and leaves
/// the sums in the metrics.
MetricValues test_model(const TrainerOptions& options, const amp::MixedPrecision& precision,
                        const Metrics& metrics, const detail::ModelSteps& model,
                        const AnyBatches& batches, std::optional<int64_t> of_epoch = {});

}  // namespace sconce
