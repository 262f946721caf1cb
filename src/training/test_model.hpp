#pragma once

#include <cstdint>
#include <optional>

#include "sconce/amp/mixed_precision.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/trainer.hpp"

namespace sconce {

/// Returns the next batch on the device.
AnyBatch next_batch(const AnyBatches::Next& next, torch::Device device);

/// Does what `Trainer::evaluate` does, over the batches of `of_epoch` or the next epoch, and leaves
/// the sums in the metrics.
MetricValues test_model(const TrainerOptions& options, const amp::MixedPrecision& precision,
                        const Metrics& metrics, const detail::ModelSteps& model,
                        const AnyBatches& batches, std::optional<int64_t> of_epoch = {});

}  // namespace sconce
