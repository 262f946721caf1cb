#include "sconce/metrics/metric.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "metrics/every_metric.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/metrics/factories.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/metrics/regression.hpp"
#include "support/error_of.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::test::error_of;

namespace {

// A custom metric: the mean, over all batches, of the largest error in each batch.
class MeanLargestError : public sconce::metrics::Metric {
 public:
  MeanLargestError() : Metric(2) {}
  void update(const torch::Tensor& preds, const torch::Tensor& target) override {
    const auto largest = (preds - target).abs().max();
    add(torch::stack({largest, torch::ones_like(largest)}));
  }
  torch::Tensor compute(const torch::Tensor& sums) const override { return sums[0] / sums[1]; }
  using Metric::compute;

  void add_too_many() { add(torch::ones({3})); }
};

using Metrics = std::vector<std::unique_ptr<sconce::metrics::Metric>>;

// Returns one metric of each kind for three-class logits.
Metrics metrics_of_classes() {
  using sconce::metrics::Average;
  Metrics metrics;
  for (const auto average : {Average::micro, Average::none}) {
    for (const int64_t top_k : {1, 2}) {
      metrics.push_back(
          std::make_unique<sconce::metrics::Accuracy>(sconce::metrics::ClassificationOptions{
              .num_classes = 3, .average = average, .top_k = top_k, .ignore_index = -1}));
    }
  }
  metrics.push_back(std::make_unique<sconce::metrics::ConfusionMatrix>(
      sconce::metrics::ConfusionMatrixOptions{.num_classes = 3, .ignore_index = -1}));
  return metrics;
}

Metrics metrics_of_numbers() {
  Metrics metrics;
  metrics.push_back(std::make_unique<sconce::metrics::MeanSquaredError>());
  metrics.push_back(std::make_unique<sconce::metrics::MeanAbsoluteError>());
  metrics.push_back(std::make_unique<sconce::metrics::MeanMetric>());
  return metrics;
}

void update_without_reads(torch::Device device) {
  const auto logits = torch::randn({10, 3, 4}).to(device);
  const auto classes = torch::randint(3, {10, 4}, torch::kLong).to(device);
  const auto numbers = torch::rand({10, 4}).to(device);
  const auto loss = numbers.mean();
  const auto all = metrics_of_classes();
  const auto regression = metrics_of_numbers();
  sconce::metrics::MeanMetric mean;
  {
    const sconce::test::HostReads reads;
    for (const auto& metric : all) {
      for (int batch = 0; batch < 2; ++batch) metric->update(logits, classes);
      metric->compute();
    }
    for (const auto& metric : regression) {
      metric->update(numbers, numbers.square());
      metric->compute();
    }
    mean.update(loss, 10);
    CHECK(reads.count() == 0);
  }
  for (const auto& metric : all) CHECK(metric->sums().device() == logits.device());
  for (const auto& [name, metric, same, preds, target] : sconce::test::every_further_metric(10)) {
    INFO(name);
    const auto there = preds.to(device), target_there = target.to(device);
    {
      const sconce::test::HostReads reads;
      for (int batch = 0; batch < 2; ++batch) metric->update(there, target_there);
      metric->compute();
      CHECK(reads.count() == 0);
    }
    CHECK(metric->sums().device() == there.device());
    for (int batch = 0; batch < 2; ++batch) same->update(preds, target);
    CHECK(metric->compute().cpu().allclose(same->compute()));
  }
}

}  // namespace

TEST_CASE(
    "a custom metric defines what each batch adds to its sums and how its value is computed from "
    "the sums") {
  MeanLargestError metric;
  metric.update(torch::tensor({1.0, 2.0}), torch::tensor({1.5, 2.0}));
  metric.update(torch::tensor({1.0f}), torch::tensor({3.0f}));
  CHECK(metric.compute().item<double>() == 1.25);
  CHECK(metric.sums().scalar_type() == torch::kDouble);
  metric.reset();
  CHECK(metric.sums().equal(torch::zeros({2}, torch::kDouble)));
}

TEST_CASE(
    "combining the sums of several ranks gives the same value as updating a single metric with all "
    "batches") {
  sconce::metrics::F1Score first({.num_classes = 3, .average = sconce::metrics::Average::macro});
  auto second = first;
  auto all = first;
  torch::manual_seed(0);
  for (auto* metric : {&first, &second}) {
    const auto logits = torch::randn({7, 3});
    const auto target = torch::randint(3, {7}, torch::kLong);
    metric->update(logits, target);
    all.update(logits, target);
  }
  CHECK(all.compute().equal(first.compute(first.sums() + second.sums())));
}

TEST_CASE("updating a metric does not change its copies or the tensor that sums() returned") {
  sconce::metrics::Accuracy metric;
  const auto batch = torch::tensor({0, 1, 2, 2});
  metric.update(batch, torch::tensor({0, 1, 0, 0}));
  const auto copy = metric;
  const auto sums = metric.sums();
  metric.update(batch, batch);
  CHECK(metric.compute().item<double>() == 0.75);
  CHECK(copy.compute().item<double>() == 0.5);
  CHECK(sums.equal(copy.sums()));
}

TEST_CASE("a metric continues from saved sums, even in a different dtype") {
  sconce::metrics::MeanMetric metric;
  const auto kept = torch::tensor({6.0f, 2.0f});
  metric.set_sums(kept);
  kept.zero_();
  CHECK(metric.compute().item<double>() == 3);
  metric.update(torch::tensor(6.0));
  CHECK(metric.compute().item<double>() == 4);
}

TEST_CASE("a metric rejects a tensor with the wrong number of sums") {
  MeanLargestError metric;
  CHECK_THAT(error_of([&] { metric.set_sums(torch::ones({3})); }),
             ContainsSubstring(
                 "sconce::metrics::Metric::set_sums: expected 2 sums, got a tensor of shape [3]"));
  CHECK_THAT(error_of([&] { metric.set_sums({}); }), ContainsSubstring("an undefined tensor"));
  CHECK_THAT(error_of([&] { metric.add_too_many(); }),
             ContainsSubstring("sconce::metrics::Metric::add: expected 2 sums"));
}

TEST_CASE(
    "every metric type continues from saved sums, both in inference mode and with inputs that "
    "require grad") {
  torch::manual_seed(0);
  for (const auto& [name, metric, same, preds, target] : sconce::test::every_further_metric(10)) {
    INFO(name);
    metric->update(preds, target);
    same->set_sums(metric->sums());
    {
      const c10::InferenceMode inference;
      metric->update(preds, target);
    }
    same->update(preds.clone().requires_grad_(), target);
    CHECK_FALSE(same->sums().requires_grad());
    CHECK(same->compute().allclose(metric->compute()));
    CHECK(same->compute().isfinite().all().item<bool>());
  }
}

TEST_CASE("a metric does not keep its inputs' autograd graph alive") {
  const auto preds = torch::ones({4}).requires_grad_();
  MeanLargestError metric;
  metric.update(preds * 2, torch::ones({4}));
  CHECK_FALSE(metric.sums().requires_grad());
  for (const auto& regression : metrics_of_numbers()) {
    regression->update(preds * 2, torch::ones({4}));
    CHECK_FALSE(regression->compute().requires_grad());
  }
  sconce::metrics::MeanMetric mean;
  mean.update((preds * 2).sum(), 4);
  CHECK_FALSE(mean.sums().requires_grad());
}

TEST_CASE("a metric can be updated in inference mode and again after inference mode ends") {
  sconce::metrics::Accuracy metric;
  const auto batch = torch::tensor({0, 1});
  {
    const c10::InferenceMode inference;
    metric.update(batch, batch);
  }
  metric.update(batch, batch);
  CHECK(metric.compute().item<double>() == 1);
}

TEST_CASE("on the CPU, updating and computing metrics performs no host reads") {
  update_without_reads(torch::kCPU);
}

TEST_CASE(
    "on a GPU, updating and computing metrics performs no host reads and keeps the sums on the GPU",
    "[gpu]") {
  sconce::test::require_gpu();
  update_without_reads(torch::kCUDA);
}

TEST_CASE(
    "under autocast, metrics on bfloat16 inputs equal metrics on the same values in float64") {
  torch::manual_seed(0);
  const auto logits = torch::randn({50, 3, 4}).to(torch::kBFloat16);
  const auto classes = torch::randint(-1, 3, {50, 4}, torch::kLong);
  const auto numbers = torch::randn({50, 4}).to(torch::kBFloat16);
  const auto expect_equal = [](const Metrics& half, const Metrics& whole,
                               const torch::Tensor& preds, const torch::Tensor& target) {
    for (size_t i = 0; i < half.size(); ++i) {
      {
        const sconce::amp::AutocastGuard autocast(torch::kCPU);
        half[i]->update(preds, target);
      }
      whole[i]->update(preds.to(torch::kDouble), target);
      CHECK(half[i]->sums().scalar_type() == torch::kDouble);
      CHECK(half[i]->compute().allclose(whole[i]->compute(), 1e-6));
    }
  };
  expect_equal(metrics_of_classes(), metrics_of_classes(), logits, classes);
  expect_equal(metrics_of_numbers(), metrics_of_numbers(), numbers, torch::rand({50, 4}));
  for (const auto& [name, half, whole, preds, target] : sconce::test::every_further_metric(50)) {
    INFO(name);
    const auto in_half = preds.to(torch::kBFloat16);
    {
      const sconce::amp::AutocastGuard autocast(torch::kCPU);
      half->update(in_half, target);
    }
    whole->update(in_half.to(torch::kDouble), target);
    CHECK(half->compute().allclose(whole->compute(), 1e-6));
  }
}

TEST_CASE("each metric reports whether a higher value is better, as in torchmetrics") {
  using namespace sconce::metrics;
  const std::optional<bool> higher = true, lower = false;
  CHECK(Accuracy().higher_is_better() == higher);
  CHECK(F1Score().higher_is_better() == higher);
  CHECK(BinaryRecall().higher_is_better() == higher);
  CHECK(BinaryAUROC({.thresholds = 9}).higher_is_better() == higher);
  CHECK(R2Score().higher_is_better() == higher);
  CHECK(MeanSquaredError().higher_is_better() == lower);
  CHECK(MeanAbsoluteError().higher_is_better() == lower);
  CHECK(MeanAbsolutePercentageError().higher_is_better() == lower);
  CHECK(Perplexity().higher_is_better() == lower);
  CHECK_FALSE(MeanMetric().higher_is_better());
  CHECK_FALSE(ConfusionMatrix({.num_classes = 2}).higher_is_better());
}

TEST_CASE("each metric's factory function returns a metric with the given options") {
  namespace metrics = sconce::metrics;
  const std::shared_ptr<metrics::ConfusionMatrix> cells =
      metrics::confusion_matrix({.num_classes = 3});
  const auto preds = torch::tensor({0, 1, 2, 2}), target = torch::tensor({0, 1, 1, 2});
  cells->update(preds, target);
  CHECK(cells->compute().sum().item<int64_t>() == 4);
  const auto recalls = metrics::recall({.num_classes = 3, .average = metrics::Average::none});
  recalls->update(preds, target);
  CHECK(recalls->compute().equal(torch::tensor({1., 0.5, 1.}, torch::kDouble)));
  const std::vector<std::pair<std::string, std::shared_ptr<metrics::Metric>>> all = {
      {"accuracy", metrics::accuracy()},
      {"precision", metrics::precision()},
      {"f1_score", metrics::f1_score()},
      {"binary_auroc", metrics::binary_auroc({.thresholds = 9})},
      {"multiclass_auroc", metrics::multiclass_auroc({.num_classes = 3, .thresholds = 9})},
      {"multilabel_auroc", metrics::multilabel_auroc({.num_labels = 3, .thresholds = 9})},
      {"binary_average_precision", metrics::binary_average_precision({.thresholds = 9})},
      {"multiclass_average_precision",
       metrics::multiclass_average_precision({.num_classes = 3, .thresholds = 9})},
      {"multilabel_average_precision",
       metrics::multilabel_average_precision({.num_labels = 3, .thresholds = 9})},
      {"binary_accuracy", metrics::binary_accuracy()},
      {"binary_precision", metrics::binary_precision()},
      {"binary_recall", metrics::binary_recall()},
      {"binary_f1_score", metrics::binary_f1_score()},
      {"multilabel_accuracy", metrics::multilabel_accuracy({.num_labels = 3})},
      {"multilabel_precision", metrics::multilabel_precision({.num_labels = 3})},
      {"multilabel_recall", metrics::multilabel_recall({.num_labels = 3})},
      {"multilabel_f1_score", metrics::multilabel_f1_score({.num_labels = 3})},
      {"mean_metric", metrics::mean_metric()},
      {"mean_squared_error", metrics::mean_squared_error({.num_outputs = 2})},
      {"mean_absolute_error", metrics::mean_absolute_error()},
      {"mean_absolute_percentage_error", metrics::mean_absolute_percentage_error()},
      {"r2_score", metrics::r2_score()},
      {"perplexity", metrics::perplexity()},
  };
  for (const auto& [name, metric] : all) {
    CAPTURE(name);
    CHECK(metric->sums().eq(0).all().item<bool>());
  }
  CHECK(error_of([&] { metrics::confusion_matrix({.num_classes = 1}); }) ==
        error_of([&] { metrics::ConfusionMatrix({.num_classes = 1}); }));
}
