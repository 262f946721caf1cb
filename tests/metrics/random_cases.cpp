#include "metrics/random_cases.hpp"

#include <c10/util/accumulate.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/metrics/regression.hpp"

namespace sconce::test {

namespace {

std::unique_ptr<metrics::Metric> score_of(int64_t kind,
                                          const metrics::ClassificationOptions& options) {
  if (kind == 0) return std::make_unique<metrics::Accuracy>(options);
  if (kind == 1) return std::make_unique<metrics::Precision>(options);
  if (kind == 2) return std::make_unique<metrics::Recall>(options);
  if (kind == 3) return std::make_unique<metrics::F1Score>(options);
  return std::make_unique<metrics::ConfusionMatrix>(metrics::ConfusionMatrixOptions{
      .num_classes = *options.num_classes, .ignore_index = options.ignore_index});
}

torch::Tensor classification(MetricDraw& draw, int64_t kind) {
  const int64_t classes = 2 + draw(5);
  const bool labels = draw(4) == 0;
  const auto average = static_cast<metrics::Average>(draw(4));
  const int64_t top_k = !labels && draw(2) != 0 ? 1 + draw(classes) : 1;
  const int64_t a_class = draw(classes);
  const auto ignore_index = draw.of<std::optional<int64_t>>({{}, {}, a_class, -1});
  const auto type = draw.of(metric_types);
  const auto metric = score_of(
      kind,
      {.num_classes = classes, .average = average, .top_k = top_k, .ignore_index = ignore_index});
  const auto extra = draw_extra(draw);
  for (int64_t batch = 1 + draw(3); batch > 0; --batch) {
    const auto shape = with_first(draw(6), extra);
    std::vector<int64_t> target;
    std::vector<double> preds;
    for (int64_t i = c10::multiply_integers(shape); i > 0; --i) {
      const bool ignored = draw(4) == 0;
      const int64_t right = draw(classes);
      target.push_back(ignored ? ignore_index.value_or(right) : right);
      std::vector<double> row;
      for (int64_t c = 0; c < classes; ++c) row.push_back(static_cast<double>(8 * draw(31) + c));
      if (draw(16) == 0) row[static_cast<size_t>(draw(classes))] = not_a_number;
      if (labels) row = {static_cast<double>(draw(classes))};
      preds.insert(preds.end(), row.begin(), row.end());
    }
    const auto right = torch::tensor(target, torch::kLong).view(shape);
    const auto numbers = torch::tensor(preds, torch::kDouble);
    if (labels) {
      metric->update(numbers.view(shape).to(torch::kLong), right);
    } else {
      auto logits_shape = shape;
      logits_shape.push_back(classes);
      metric->update(numbers.view(logits_shape).movedim(-1, 1).to(type), right);
    }
  }
  return metric->compute();
}

torch::Tensor regression(MetricDraw& draw, int64_t kind) {
  const int64_t num_outputs = draw(2) != 0 ? 1 + draw(3) : 1;
  const bool squared = draw(4) != 0;
  std::unique_ptr<metrics::Metric> metric = std::make_unique<metrics::MeanMetric>();
  if (kind == 5) {
    metric = std::make_unique<metrics::MeanSquaredError>(
        metrics::MeanSquaredErrorOptions{.squared = squared, .num_outputs = num_outputs});
  } else if (kind == 6) {
    metric = std::make_unique<metrics::MeanAbsoluteError>(
        metrics::MeanAbsoluteErrorOptions{.num_outputs = num_outputs});
  }
  const auto extra = num_outputs > 1 ? std::vector{num_outputs} : draw_extra(draw);
  for (int64_t batch = 1 + draw(3); batch > 0; --batch) {
    const auto shape = with_first(draw(6), extra);
    const auto first = draw_numbers(draw, shape);
    const auto second = draw_numbers(draw, shape);
    metric->update(first, kind == 7 ? second.square() : second);
  }
  return metric->compute();
}

}  // namespace

std::vector<int64_t> draw_extra(MetricDraw& draw) {
  std::vector<int64_t> extra(static_cast<size_t>(draw(3)));
  for (auto& size : extra) size = 1 + draw(3);
  return extra;
}

std::vector<int64_t> with_first(int64_t first, std::vector<int64_t> extra) {
  extra.insert(extra.begin(), first);
  return extra;
}

torch::Tensor draw_numbers(MetricDraw& draw, const std::vector<int64_t>& shape) {
  std::vector<double> values;
  for (int64_t i = c10::multiply_integers(shape); i > 0; --i) {
    const double value = static_cast<double>(draw(1024) - 512) / 8;
    values.push_back(draw(64) == 0 ? not_a_number : value);
  }
  return torch::tensor(values, torch::kDouble).view(shape);
}

std::vector<torch::Tensor> metric_values() {
  const char* name = std::getenv("SCONCE_METRIC_VALUES");
  std::ifstream file(name != nullptr ? name : SCONCE_TESTS_DIR "/reference/metrics.txt");
  std::vector<torch::Tensor> values;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<double> numbers;
    // operator>> for double does not parse nan.
    for (std::string word; words >> word;) numbers.push_back(std::stod(word));
    values.push_back(torch::tensor(numbers, torch::kDouble));
  }
  return values;
}

torch::Tensor metric_of_case(size_t number) {
  if (number >= first_cases) return further_metric_of_case(number);
  MetricDraw draw(number);
  const int64_t kind = draw(8);
  return kind < 5 ? classification(draw, kind) : regression(draw, kind);
}

}  // namespace sconce::test
