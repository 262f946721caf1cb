#pragma once

#include <map>
#include <string>
#include <vector>

#include "sconce/optim/metric_mode.hpp"
#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/metrics.hpp"
#include "sconce/training/test_sets.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

/// Returns the metrics in the options. If there are none, returns the accuracy as "acc", provided
/// that the options do not contain a loss and the model's steps return more than a loss.
Metrics metrics_of(const TrainerOptions& options, const detail::ModelSteps& model);

/// Returns the names of the values that a fit adds to the EpochMetrics of an epoch, except for step
/// values.
std::vector<std::string> names_of_values(const Metrics& metrics, const TestSets& test);

/// Returns the modes of these values, except for metrics without a direction.
std::map<std::string, optim::MetricMode> modes_of_values(const Metrics& metrics,
                                                         const TestSets& test);

/// @throw c10::Error if a metric is null, if two metrics share a name, or if one is named "loss".
void check_metrics(const Metrics& metrics);

}  // namespace sconce
