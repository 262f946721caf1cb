#include <c10/util/accumulate.h>

#include <algorithm>
#include <memory>

#include "metrics/random_cases.hpp"
#include "sconce/metrics/curve_scores.hpp"
#include "sconce/metrics/label_scores.hpp"
#include "sconce/metrics/perplexity.hpp"
#include "sconce/metrics/regression.hpp"

namespace sconce::test {

namespace {

using MetricPointer = std::unique_ptr<metrics::Metric>;
using Index = std::optional<int64_t>;

torch::Tensor draw_scores(MetricDraw& draw, const std::vector<int64_t>& shape, bool logits,
                          bool between, bool nan) {
  std::vector<double> values;
  for (int64_t i = c10::multiply_integers(shape); i > 0; --i) {
    double value = 0;
    if (logits) {
      value = static_cast<double>(2 * draw(128) - 127) / 16;
    } else if (between) {
      value = static_cast<double>(2 * draw(64) + 1) / 128;
    } else {
      value = static_cast<double>(draw(17)) / 16;
    }
    values.push_back(draw(64) == 0 && nan ? not_a_number : value);
  }
  return torch::tensor(values, torch::kDouble).view(shape);
}

torch::Tensor draw_labels(MetricDraw& draw, const std::vector<int64_t>& shape, int64_t classes,
                          const Index& ignore_index) {
  std::vector<int64_t> values;
  for (int64_t i = c10::multiply_integers(shape); i > 0; --i) {
    const bool ignored = draw(4) == 0;
    const int64_t right = draw(classes);
    values.push_back(ignored ? ignore_index.value_or(right) : right);
  }
  return torch::tensor(values, torch::kLong).view(shape);
}

MetricPointer label_score(int64_t kind, const metrics::MultilabelOptions& options) {
  const metrics::BinaryOptions binary = {.threshold = options.threshold,
                                         .ignore_index = options.ignore_index};
  switch (kind) {
    case 0:
      return std::make_unique<metrics::BinaryAccuracy>(binary);
    case 1:
      return std::make_unique<metrics::BinaryPrecision>(binary);
    case 2:
      return std::make_unique<metrics::BinaryRecall>(binary);
    case 3:
      return std::make_unique<metrics::BinaryF1Score>(binary);
    case 4:
      return std::make_unique<metrics::MultilabelAccuracy>(options);
    case 5:
      return std::make_unique<metrics::MultilabelPrecision>(options);
    case 6:
      return std::make_unique<metrics::MultilabelRecall>(options);
    default:
      return std::make_unique<metrics::MultilabelF1Score>(options);
  }
}

torch::Tensor label_scores(MetricDraw& draw, int64_t kind) {
  const int64_t labels = 2 + draw(4);
  const double threshold = static_cast<double>(draw(9)) / 8;
  const auto average = static_cast<metrics::Average>(draw(4));
  const int64_t a_label = draw(2);
  const auto ignore_index = draw.of<Index>({{}, {}, a_label, -1});
  const auto type = draw.of(metric_types);
  const auto target_type = draw(4) == 0 ? torch::kFloat : torch::kLong;
  const auto metric = label_score(kind, {.num_labels = labels,
                                         .threshold = threshold,
                                         .average = average,
                                         .ignore_index = ignore_index});
  auto extra = draw_extra(draw);
  if (kind >= 4) extra.insert(extra.begin(), labels);
  const int64_t form = draw(4);
  for (int64_t batch = 1 + draw(3); batch > 0; --batch) {
    const auto shape = with_first(draw(6), extra);
    const auto target = draw_labels(draw, shape, 2, ignore_index).to(target_type);
    if (form > 0) {
      metric->update(draw_scores(draw, shape, form > 1, false, true).to(type), target);
      continue;
    }
    std::vector<int64_t> answers(static_cast<size_t>(target.numel()));
    for (auto& answer : answers) answer = draw(2);
    metric->update(torch::tensor(answers, torch::kLong).view(shape), target);
  }
  return metric->compute();
}

// Draws random thresholds. The returned flag indicates whether each probability must lie between
// two thresholds.
std::pair<metrics::Thresholds, bool> draw_thresholds(MetricDraw& draw) {
  const int64_t form = draw(3);
  const int64_t grid = draw.of<int64_t>({2, 3, 5, 9});
  const int64_t number = 2 + draw(30);
  std::vector<double> values(static_cast<size_t>(1 + draw(5)));
  for (auto& value : values) value = static_cast<double>(draw(17)) / 16;
  std::sort(values.begin(), values.end());
  if (form == 0) return {grid, false};
  if (form == 1) return {number, true};
  return {values, false};
}

MetricPointer curve_score(int64_t kind, const metrics::MultilabelCurveOptions& options,
                          std::optional<double> max_fpr) {
  const auto& [columns, average, thresholds, ignore_index] = options;
  const metrics::MulticlassCurveOptions of_classes = {
      .num_classes = columns,
      .average = average == metrics::Average::micro ? metrics::Average::macro : average,
      .thresholds = thresholds,
      .ignore_index = ignore_index};
  switch (kind) {
    case 8:
      return std::make_unique<metrics::BinaryAUROC>(metrics::BinaryAUROCOptions{
          .max_fpr = max_fpr, .thresholds = thresholds, .ignore_index = ignore_index});
    case 9:
      return std::make_unique<metrics::MulticlassAUROC>(of_classes);
    case 10:
      return std::make_unique<metrics::MultilabelAUROC>(options);
    case 11:
      return std::make_unique<metrics::BinaryAveragePrecision>(
          metrics::BinaryAveragePrecisionOptions{.thresholds = thresholds,
                                                 .ignore_index = ignore_index});
    case 12:
      return std::make_unique<metrics::MulticlassAveragePrecision>(of_classes);
    default:
      return std::make_unique<metrics::MultilabelAveragePrecision>(options);
  }
}

torch::Tensor curve_scores(MetricDraw& draw, int64_t kind) {
  const int64_t task = (kind - 8) % 3;  // binary, multiclass, multilabel
  const int64_t columns = task > 0 ? 2 + draw(4) : 1;
  const auto average = static_cast<metrics::Average>(draw(4));
  const auto [thresholds, between] = draw_thresholds(draw);
  const double a_rate = static_cast<double>(1 + draw(8)) / 8;
  auto max_fpr = draw.of<std::optional<double>>({{}, {}, {}, a_rate});
  const int64_t classes = task == 1 ? columns : 2;
  const int64_t a_label = draw(classes);
  const auto ignore_index = draw.of<Index>({{}, {}, a_label, -1});
  const auto type = draw.of(metric_types);
  const bool logits = draw(2) == 0;
  if (kind != 8 || !std::holds_alternative<int64_t>(thresholds)) max_fpr.reset();
  const auto metric = curve_score(kind,
                                  {.num_labels = columns,
                                   .average = average,
                                   .thresholds = thresholds,
                                   .ignore_index = ignore_index},
                                  max_fpr);
  const auto extra = draw_extra(draw);
  auto of_row = extra;
  if (task > 0) of_row.insert(of_row.begin(), columns);
  for (int64_t batch = 1 + draw(3); batch > 0; --batch) {
    const int64_t rows = draw(9);
    const auto target =
        draw_labels(draw, with_first(rows, task == 1 ? extra : of_row), classes, ignore_index);
    const auto preds = draw_scores(draw, with_first(rows, of_row), logits, between, !max_fpr);
    metric->update(preds.to(type), target);
  }
  return metric->compute();
}

torch::Tensor percentage_error(MetricDraw& draw) {
  metrics::MeanAbsolutePercentageError metric;
  const auto extra = draw_extra(draw);
  for (int64_t batch = 1 + draw(3); batch > 0; --batch) {
    const auto shape = with_first(draw(6), extra);
    const auto preds = draw_numbers(draw, shape);
    metric.update(preds, draw_numbers(draw, shape));
  }
  return metric.compute();
}

torch::Tensor r2_score(MetricDraw& draw) {
  const int64_t num_outputs = 1 + draw(3);
  const int64_t adjusted = draw(4);
  const auto multioutput = static_cast<metrics::Multioutput>(draw(3));
  const int64_t form = draw(8);
  metrics::R2Score metric(
      {.num_outputs = num_outputs, .adjusted = adjusted, .multioutput = multioutput});
  for (int64_t batch = 1 + draw(3); batch > 0; --batch) {
    std::vector<int64_t> shape = {draw(6)};
    if (num_outputs > 1) shape.push_back(num_outputs);
    const auto preds = draw_numbers(draw, shape);
    auto target = draw_numbers(draw, shape);
    if (form == 1) target.fill_(2.5);
    if (form == 2) {
      preds.div_(4096);
      target.div_(4096);
    }
    metric.update(form == 0 ? target : preds, target);
  }
  return metric.compute();
}

torch::Tensor perplexity(MetricDraw& draw) {
  const int64_t classes = 2 + draw(5);
  const int64_t a_class = draw(classes);
  const auto ignore_index = draw.of<Index>({{}, {}, a_class, -100});
  const auto type = draw.of(metric_types);
  metrics::Perplexity metric({.ignore_index = ignore_index});
  for (int64_t batch = 1 + draw(3); batch > 0; --batch) {
    const std::vector<int64_t> shape = {draw(4), 1 + draw(4)};
    const auto target = draw_labels(draw, shape, classes, ignore_index);
    const bool nan = draw(4) == 0;
    const auto preds = draw_scores(draw, {shape[0], shape[1], classes}, true, false, nan);
    metric.update(preds.to(type), target);
  }
  return metric.compute();
}

}  // namespace

torch::Tensor further_metric_of_case(size_t number) {
  MetricDraw draw(number);
  const auto kind = static_cast<int64_t>((number - first_cases) % 17);
  if (kind < 8) return label_scores(draw, kind);
  if (kind < 14) return curve_scores(draw, kind);
  if (kind == 14) return percentage_error(draw);
  return kind == 15 ? r2_score(draw) : perplexity(draw);
}

}  // namespace sconce::test
