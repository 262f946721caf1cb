#include "sconce/metrics/curve_scores.hpp"

#include <cmath>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::Average;
using sconce::metrics::BinaryAUROC;
using sconce::metrics::BinaryAveragePrecision;
using sconce::metrics::MulticlassAUROC;
using sconce::metrics::MulticlassAveragePrecision;
using sconce::metrics::MultilabelAUROC;
using sconce::metrics::MultilabelAveragePrecision;
using sconce::test::error_of;

// The values in this file are from torchmetrics 1.9.0.
TEST_CASE("BinaryAUROC and BinaryAveragePrecision compute areas at the given thresholds") {
  const auto preds = torch::tensor({0.0, 0.5, 0.7, 0.8});
  const auto target = torch::tensor({0, 1, 1, 0});
  BinaryAUROC auroc({.thresholds = 5});
  auroc.update(preds, target);
  CHECK(auroc.compute().item<double>() == 0.5);
  CHECK(auroc.compute().dim() == 0);
  BinaryAveragePrecision precision({.thresholds = 5});
  precision.update(preds, target);
  CHECK(precision.compute().item<double>() == Catch::Approx(2.0 / 3));
  // With a single threshold, a curve has no area.
  BinaryAUROC point({.thresholds = std::vector{0.5}});
  point.update(preds, target);
  CHECK(point.compute().item<double>() == 0);
}

TEST_CASE(
    "BinaryAUROC is 1 for a perfect ranking and 0 for the reverse ranking, for both probabilities "
    "and logits") {
  const auto target = torch::tensor({0, 0, 1, 1});
  for (const auto& preds :
       {torch::tensor({0.1, 0.3, 0.6, 0.9}), torch::tensor({-2., 0., 1., 3.})}) {
    BinaryAUROC ascending({.thresholds = 100}), descending({.thresholds = 100});
    ascending.update(preds, target);
    descending.update(preds.flip(0), target);
    CHECK(ascending.compute().item<double>() == 1);
    CHECK(descending.compute().item<double>() == 0);
  }
}

TEST_CASE("BinaryAUROC with max_fpr computes the scaled partial area up to max_fpr") {
  const auto preds = torch::tensor({0.15, 0.25, 0.45, 0.55, 0.75, 0.95});
  const auto target = torch::tensor({0, 1, 0, 0, 1, 1});
  const auto value = [&](std::optional<double> max_fpr) {
    BinaryAUROC auroc({.max_fpr = max_fpr, .thresholds = 11});
    auroc.update(preds, target);
    return auroc.compute().item<double>();
  };
  CHECK(value({}) == Catch::Approx(7.0 / 9));
  CHECK(value(1) == value({}));
  // The curve starts at (0, 2/3) and is flat up to the given rate.
  for (const double rate : {1.0 / 3, 0.5}) {
    const double chance = rate * rate / 2;
    CHECK(value(rate) == Catch::Approx(0.5 * (1 + (rate * 2 / 3 - chance) / (rate - chance))));
  }
  // Without positive targets, the true positive rate is 0 at every threshold, and the area is not
  // scaled.
  BinaryAUROC none({.max_fpr = 0.5, .thresholds = 11});
  none.update(preds, torch::zeros_like(target));
  CHECK(none.compute().item<double>() == 0);
}

TEST_CASE(
    "multiclass and multilabel AUROC and average precision support averages and per-class values") {
  const auto logits = torch::tensor({{2.0, 0.0, 1.0}, {0.0, 3.0, -1.0}, {0.5, 0.25, 4.0}});
  const auto classes = torch::tensor({0, 1, 0});
  const auto value = [&](Average average) {
    MulticlassAUROC auroc({.num_classes = 3, .average = average, .thresholds = 50});
    auroc.update(logits, classes);
    return auroc.compute();
  };
  // No target belongs to the third class.
  CHECK(value(Average::none).equal(torch::tensor({0.5, 1.0, 0.0}, torch::kDouble)));
  CHECK(value(Average::macro).item<double>() == 0.5);
  CHECK(value(Average::weighted).item<double>() == Catch::Approx(2.0 / 3));
  const auto labels = torch::one_hot(classes, 3);
  MultilabelAUROC micro({.num_labels = 3, .average = Average::micro, .thresholds = 50});
  micro.update(logits.sigmoid(), labels);
  BinaryAUROC flat({.thresholds = 50});
  flat.update(logits.sigmoid().flatten(), labels.flatten());
  CHECK(micro.compute().equal(flat.compute()));
}

TEST_CASE("an invalid target makes the area NaN, and an ignored target is not counted") {
  BinaryAUROC auroc({.thresholds = 5, .ignore_index = -1});
  auroc.update(torch::tensor({0.2, 0.9, 7.0}), torch::tensor({0, 1, -1}));
  CHECK(auroc.compute().item<double>() == 1);
  auroc.update(torch::tensor({0.2}), torch::tensor({2}));
  CHECK(std::isnan(auroc.compute().item<double>()));
  for (const int64_t wrong : {-1, 3}) {
    MulticlassAveragePrecision precision({.num_classes = 3, .thresholds = 5});
    precision.update(torch::rand({2, 3}), torch::tensor({int64_t{1}, wrong}));
    CHECK(std::isnan(precision.compute().item<double>()));
  }
}

TEST_CASE("AUROC and average precision are 0 before the first batch and after an empty batch") {
  MulticlassAUROC auroc({.num_classes = 2, .thresholds = 3});
  CHECK(auroc.compute().item<double>() == 0);
  auroc.update(torch::zeros({0, 2, 4}), torch::zeros({0, 4}, torch::kLong));
  CHECK(auroc.compute().item<double>() == 0);
  MultilabelAveragePrecision precision({.num_labels = 2, .thresholds = 3});
  precision.update(torch::zeros({0, 2}), torch::zeros({0, 2}));
  CHECK(precision.compute().item<double>() == 0);
}

TEST_CASE(
    "AUROC metrics accept floating-point targets and non-contiguous preds without a warning") {
  const c10::WarningUtils::WarnAlways each_time;
  const sconce::test::Warnings warnings;
  const auto preds = torch::rand({3, 6}), target = torch::rand({3, 6}).round();
  MultilabelAUROC strided({.num_labels = 3, .thresholds = 9}), packed = strided;
  strided.update(preds.t(), target.t());
  packed.update(preds.t().contiguous(), target.t().contiguous().to(torch::kLong));
  CHECK(strided.sums().equal(packed.sums()));
  MulticlassAUROC of_classes({.num_classes = 6, .thresholds = 9});
  of_classes.update(preds, torch::tensor({0, 1, 2}));
  CHECK(warnings.messages().empty());
}

TEST_CASE(
    "AUROC and average precision reject invalid options with an error that names the metric") {
  CHECK_THAT(error_of([] { BinaryAUROC auroc({}); }),
             ContainsSubstring("sconce::metrics::BinaryAUROC: expected thresholds to be a list or "
                               "an integer greater than 1, got 0"));
  CHECK_THAT(error_of([] { BinaryAveragePrecision precision({.thresholds = 1}); }),
             ContainsSubstring("sconce::metrics::BinaryAveragePrecision: expected thresholds to be "
                               "a list or an integer greater than 1, got 1"));
  using Lists = std::vector<std::vector<double>>;
  for (const auto& list : Lists{{}, {0.5, 0.25}, {0.5, 1.5}, {std::nan("")}}) {
    CHECK_THAT(error_of([&] { BinaryAUROC auroc({.thresholds = list}); }),
               ContainsSubstring("a list of thresholds from 0 to 1 in ascending order, got ["));
  }
  CHECK_THAT(error_of([] { BinaryAUROC auroc({.thresholds = std::vector{0.5, 0.25}}); }),
             ContainsSubstring("got [0.5, 0.25]"));
  for (const double rate : {0.0, 1.5, std::nan("")}) {
    CHECK_THAT(error_of([&] { BinaryAUROC auroc({.max_fpr = rate, .thresholds = 5}); }),
               ContainsSubstring("max_fpr to be above 0 and at most 1, got "));
  }
  CHECK_THAT(error_of([] { MulticlassAUROC auroc({.num_classes = 1, .thresholds = 5}); }),
             ContainsSubstring(
                 "sconce::metrics::MulticlassAUROC: expected num_classes to be at least 2, got 1"));
  CHECK_THAT(error_of([] { MultilabelAUROC auroc({.num_labels = 0, .thresholds = 5}); }),
             ContainsSubstring("expected num_labels to be at least 2, got 0"));
  CHECK_THAT(
      error_of([] {
        MulticlassAUROC auroc({.num_classes = 3, .average = Average::micro, .thresholds = 5});
      }),
      ContainsSubstring("expected average to be macro, weighted, or none, got micro"));
}

TEST_CASE(
    "AUROC and average precision reject invalid sizes, types, and devices before changing any "
    "sum") {
  const auto message = [](const torch::Tensor& preds, const torch::Tensor& target) {
    MulticlassAUROC auroc({.num_classes = 3, .thresholds = 4});
    const auto error = error_of([&] { auroc.update(preds, target); });
    CHECK_THAT(error, ContainsSubstring("sconce::metrics::MulticlassAUROC: expected "));
    CHECK(auroc.sums().equal(torch::zeros({30}, torch::kDouble)));
    return error;
  };
  const auto target = torch::zeros({4}, torch::kLong);
  CHECK_THAT(message(torch::zeros({4, 2}), target),
             ContainsSubstring("preds (N, 3, ...) for a target (N, ...), got [4, 2] for [4]"));
  CHECK_THAT(message(torch::zeros({5, 3}), target), ContainsSubstring("got [5, 3] for [4]"));
  CHECK_THAT(message(torch::zeros({4}), target), ContainsSubstring("got [4] for [4]"));
  CHECK_THAT(message(torch::zeros({4, 3, 2}), torch::zeros({4, 5}, torch::kLong)),
             ContainsSubstring("got [4, 3, 2] for [4, 5]"));
  CHECK_THAT(message(torch::zeros({3}), torch::zeros({}, torch::kLong)),
             ContainsSubstring("got [3] for []"));
  CHECK_THAT(message(torch::zeros({4, 3}), torch::zeros({4})),
             ContainsSubstring("a target of integer classes (N, ...), got [4] of Float"));
  CHECK_THAT(
      message(torch::zeros({4, 3}, torch::kLong), target),
      ContainsSubstring("expected floating-point probabilities or logits, got preds of Long"));
  CHECK_THAT(message({}, target), ContainsSubstring("an undefined tensor"));
  CHECK_THAT(message(torch::zeros({4, 3}, torch::kMeta), target),
             ContainsSubstring("on the same device, got meta and cpu"));
  const auto of_labels = [](const torch::Tensor& preds, const torch::Tensor& labels) {
    return error_of(
        [&] { MultilabelAUROC({.num_labels = 3, .thresholds = 4}).update(preds, labels); });
  };
  CHECK_THAT(of_labels(torch::zeros({4, 2}), torch::zeros({4, 2})),
             ContainsSubstring("sconce::metrics::MultilabelAUROC: expected sizes (N, 3, ...), got "
                               "[4, 2]"));
  CHECK_THAT(of_labels(torch::zeros({4, 3}), torch::zeros({4, 1})),
             ContainsSubstring("with the same shape, got [4, 3] and [4, 1]"));
  CHECK_THAT(
      error_of([] { BinaryAUROC({.thresholds = 4}).update(torch::ones({}), torch::ones({})); }),
      ContainsSubstring("expected sizes (N, ...), got []"));
}
