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

/// Returns the next batch on the device. `index` is the batch's index in the epoch.
AnyBatch next_batch(const AnyBatches::Next& next, torch::Device device, int64_t index);

/// The scope of an evaluation or a prediction. Sets the precision, disables gradients, and puts the
/// model in evaluation mode with the buffers from rank 0.
class EvaluationScope {
 public:
  /// Enters the scope. `caller` is the name of the calling function.
  /// @throw c10::Error if a group of one has no batches.
  EvaluationScope(const TrainerOptions& options, const amp::MixedPrecision& precision,
                  const detail::ModelSteps& model, const AnyBatches& batches, const char* caller);

  /// Calls `step` with each batch on the device. The batches come from epoch `epoch` or, if `epoch`
  /// is empty, from the next epoch.
  void for_each_batch(std::optional<int64_t> epoch,
                      const std::function<void(const AnyBatch&)>& step) const;

 private:
  const TrainerOptions& options_;
  const AnyBatches& batches_;
  at::NoGradGuard no_grad_;
  nn::ModeGuard restore_;
  backends::FlagsGuard settings_;
  amp::AutocastGuard autocast_;
};

/// Runs `Trainer::evaluate` on the batches from epoch `epoch` or, if `epoch` is empty, from the
/// next epoch. Afterwards, the metrics contain the sums.
MetricValues test_model(const TrainerOptions& options, const amp::MixedPrecision& precision,
                        const Metrics& metrics, const detail::ModelSteps& model,
                        const AnyBatches& batches, std::optional<int64_t> epoch = {});

}  // namespace sconce
