#include "training/fit_metrics.hpp"

#include <exception>
#include <set>

#include "sconce/metrics/classification.hpp"

namespace sconce {

namespace {

// Returns whether a metric's value is a single number. A metric without a value before its first
// batch is assumed to return a single number.
bool is_one_number(const metrics::Metric& metric) {
  try {
    return metric.compute().numel() == 1;
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace

Metrics metrics_of(const TrainerOptions& options, const detail::ModelSteps& model) {
  if (options.metrics) return *options.metrics;
  if (options.loss || model.train_without_output || model.test_without_output) return {};
  return {{"acc", std::make_shared<metrics::Accuracy>()}};
}

std::vector<std::string> names_of_values(const Metrics& metrics, const TestSets& test) {
  std::vector<std::string> numbers;
  for (const auto& [name, metric] : metrics) {
    if (is_one_number(*metric)) numbers.push_back(name);
  }
  std::vector<std::string> names = {"loss"};
  const auto add_metrics = [&](const std::string& prefix) {
    for (const auto& name : numbers) names.push_back(prefix + name);
  };
  add_metrics("train_");
  for (const auto& set : test) {
    names.push_back(set.name + "_loss");
    add_metrics(set.name + "_");
  }
  return names;
}

std::map<std::string, optim::MetricMode> modes_of_values(const Metrics& metrics,
                                                         const TestSets& test) {
  using optim::MetricMode;
  std::map<std::string, MetricMode> modes = {{"loss", MetricMode::min}};
  for (const auto& set : test) modes[set.name + "_loss"] = MetricMode::min;
  for (const auto& [name, metric] : metrics) {
    const auto higher_is_better = metric->higher_is_better();
    if (!higher_is_better) continue;
    const auto mode = *higher_is_better ? MetricMode::max : MetricMode::min;
    modes["train_" + name] = mode;
    for (const auto& set : test) modes[set.name + "_" + name] = mode;
  }
  return modes;
}

void check_metrics(const Metrics& metrics) {
  std::set<std::string> names;
  for (const auto& [name, metric] : metrics) {
    TORCH_CHECK(metric, "sconce::Trainer: expected a metric for '", name, "', got null");
    TORCH_CHECK(name != "loss",
                "sconce::Trainer: expected a metric name other than 'loss', which is reserved for "
                "the loss");
    TORCH_CHECK(names.insert(name).second,
                "sconce::Trainer: expected metrics with different names, got two called '", name,
                "'");
  }
}

}  // namespace sconce
