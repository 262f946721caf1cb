#include "sconce/metrics/label_scores.hpp"

#include <cmath>

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::Average;
using sconce::metrics::BinaryAccuracy;
using sconce::metrics::BinaryF1Score;
using sconce::metrics::BinaryPrecision;
using sconce::metrics::BinaryRecall;
using sconce::metrics::MultilabelAccuracy;
using sconce::metrics::MultilabelF1Score;
using sconce::metrics::MultilabelRecall;
using sconce::test::error_of;

TEST_CASE("binary metrics accept probabilities, logits, and 0/1 predictions") {
  const auto target = torch::tensor({1, 1, 0, 0, 1});
  const auto answers = torch::tensor({1, 0, 1, 0, 0});
  const auto probabilities = torch::tensor({0.9, 0.5, 0.6, 0.1, 0.0});
  const auto logits = torch::tensor({2.0, 0.0, 1.5, -1.0, -3.0});
  for (const auto& preds : {answers, probabilities, logits}) {
    BinaryAccuracy accuracy;
    BinaryPrecision precision;
    BinaryRecall recall;
    BinaryF1Score f1;
    for (sconce::metrics::Metric* metric :
         std::initializer_list<sconce::metrics::Metric*>{&accuracy, &precision, &recall, &f1}) {
      metric->update(preds, target);
      CHECK(metric->compute().dim() == 0);
    }
    CHECK(accuracy.compute().item<double>() == 2.0 / 5);
    CHECK(precision.compute().item<double>() == 1.0 / 2);
    CHECK(recall.compute().item<double>() == 1.0 / 3);
    CHECK(f1.compute().item<double>() == 2.0 / 5);
  }
}

TEST_CASE(
    "a threshold applies to probabilities, and each batch can contain either logits or "
    "probabilities") {
  BinaryAccuracy accuracy({.threshold = 0.75});
  accuracy.update(torch::tensor({0.7, 0.8}), torch::tensor({0, 1}));
  CHECK(accuracy.compute().item<double>() == 1);
  // The probability for a logit of 1 is 0.73.
  accuracy.update(torch::tensor({1.0, 2.0}), torch::tensor({0, 1}));
  CHECK(accuracy.compute().item<double>() == 1);
}

TEST_CASE("multilabel metrics are computed per label and averaged as in torchmetrics") {
  // The third label has no positive targets and no positive predictions.
  const auto target = torch::tensor({{1, 0, 0}, {1, 1, 0}});
  const auto preds = torch::tensor({{0.9, 0.8, 0.1}, {0.1, 0.7, 0.2}});
  const auto value = [&](Average average) {
    MultilabelRecall recall({.num_labels = 3, .average = average});
    recall.update(preds, target);
    return recall.compute();
  };
  CHECK(value(Average::none).equal(torch::tensor({0.5, 1.0, 0.0}, torch::kDouble)));
  CHECK(value(Average::macro).item<double>() == 0.5);
  CHECK(value(Average::weighted).item<double>() == Catch::Approx(2.0 / 3));
  CHECK(value(Average::micro).item<double>() == Catch::Approx(2.0 / 3));
}

TEST_CASE("multilabel metrics count every pixel of (N, num_labels, ...) inputs under its label") {
  const auto target = torch::tensor({1, 0, 1, 1, 0, 0, 0, 0}).view({2, 2, 2});
  MultilabelAccuracy accuracy({.num_labels = 2, .average = Average::none});
  accuracy.update(torch::ones({2, 2, 2}), target);
  CHECK(accuracy.compute().equal(torch::tensor({0.25, 0.5}, torch::kDouble)));
}

TEST_CASE("an ignored target does not count, regardless of its prediction") {
  BinaryPrecision precision({.ignore_index = -1});
  precision.update(torch::tensor({0.9, 0.8, 0.7}), torch::tensor({1, -1, 0}));
  CHECK(precision.compute().item<double>() == 0.5);
  BinaryAccuracy without_zeros({.ignore_index = 0});
  without_zeros.update(torch::tensor({0.9, 0.8, 0.2}), torch::tensor({1, 0, 1}));
  CHECK(without_zeros.compute().item<double>() == 0.5);
}

TEST_CASE(
    "a target or prediction other than 0 or 1 makes the metric NaN until the metric is reset") {
  const auto labels = torch::tensor({0, 1, 1});
  for (const auto& wrong : {torch::tensor({0, 1, 2}), torch::tensor({-1, 1, 1})}) {
    BinaryAccuracy of_target, of_answers;
    of_target.update(labels.to(torch::kFloat), wrong);
    CHECK(std::isnan(of_target.compute().item<double>()));
    of_answers.update(wrong, labels);
    CHECK(std::isnan(of_answers.compute().item<double>()));
    of_answers.update(labels, labels);
    CHECK(std::isnan(of_answers.compute().item<double>()));
    of_answers.reset();
    of_answers.update(labels, labels);
    CHECK(of_answers.compute().item<double>() == 1);
  }
  MultilabelF1Score half({.num_labels = 2});
  half.update(torch::rand({2, 2}), torch::full({2, 2}, 0.5));
  CHECK(std::isnan(half.compute().item<double>()));
}

TEST_CASE("binary labels can have any real dtype, and a NaN prediction counts as 0") {
  const auto numbers = torch::tensor({0, 1, 1, 0});
  for (const auto type : {torch::kByte, torch::kBool, torch::kInt, torch::kFloat, torch::kHalf}) {
    BinaryAccuracy accuracy({.ignore_index = -1});
    accuracy.update(numbers.to(type), torch::tensor({0, 1, 0, 0}).to(type));
    CHECK(accuracy.compute().item<double>() == 0.75);
  }
  BinaryAccuracy accuracy;
  accuracy.update(torch::tensor({std::nan(""), 1.0}), torch::tensor({0, 1}));
  CHECK(accuracy.compute().item<double>() == 1);
}

TEST_CASE("probabilities for 16-bit logits are computed in float32") {
  // A logit of 0.001 gives a probability just above 0.5, which rounds to 0.5 in bfloat16.
  BinaryRecall recall;
  recall.update(torch::tensor({0.001, -2.0}, torch::kBFloat16), torch::tensor({1, 0}));
  CHECK(recall.compute().item<double>() == 1);
}

TEST_CASE("binary and multilabel metrics are 0 before the first batch and after an empty batch") {
  BinaryF1Score f1;
  CHECK(f1.compute().item<double>() == 0);
  f1.update(torch::zeros({0}), torch::zeros({0}));
  CHECK(f1.compute().item<double>() == 0);
  MultilabelAccuracy accuracy({.num_labels = 3, .average = Average::none});
  accuracy.update(torch::zeros({0, 3, 2}), torch::zeros({0, 3, 2}));
  CHECK(accuracy.compute().equal(torch::zeros({3}, torch::kDouble)));
}

TEST_CASE(
    "binary and multilabel metrics reject out-of-range options with an error that names the "
    "metric") {
  CHECK_THAT(error_of([] { BinaryAccuracy accuracy({.threshold = 1.5}); }),
             ContainsSubstring(
                 "sconce::metrics::BinaryAccuracy: expected threshold to be from 0 to 1, got 1.5"));
  CHECK_THAT(error_of([] { BinaryAccuracy accuracy({.threshold = std::nan("")}); }),
             ContainsSubstring("from 0 to 1, got nan"));
  CHECK_THAT(
      error_of([] { MultilabelF1Score f1({.num_labels = 0}); }),
      ContainsSubstring(
          "sconce::metrics::MultilabelF1Score: expected num_labels to be at least 2, got 0"));
}

TEST_CASE(
    "binary and multilabel metrics reject invalid sizes, types, and devices before changing any "
    "sum") {
  const auto message = [](const torch::Tensor& preds, const torch::Tensor& target) {
    MultilabelAccuracy accuracy({.num_labels = 3});
    const auto error = error_of([&] { accuracy.update(preds, target); });
    CHECK_THAT(error, ContainsSubstring("sconce::metrics::MultilabelAccuracy: expected "));
    CHECK(accuracy.sums().equal(torch::zeros({12}, torch::kDouble)));
    return error;
  };
  const auto target = torch::zeros({4, 3});
  CHECK_THAT(message(torch::zeros({4, 2}), target), ContainsSubstring("got [4, 2] and [4, 3]"));
  CHECK_THAT(message(torch::zeros({4, 2}), torch::zeros({4, 2})),
             ContainsSubstring("sizes (N, 3, ...), got [4, 2]"));
  CHECK_THAT(message(torch::zeros({3}), torch::zeros({3})), ContainsSubstring("got [3]"));
  CHECK_THAT(message(torch::zeros({4, 3}, torch::kComplexFloat), target),
             ContainsSubstring("real-valued tensors, got ComplexFloat and Float"));
  CHECK_THAT(message({}, target), ContainsSubstring("an undefined tensor"));
  CHECK_THAT(message(torch::zeros({4, 3}, torch::kMeta), target),
             ContainsSubstring("on the same device, got meta and cpu"));
  CHECK_THAT(error_of([] { BinaryAccuracy().update(torch::zeros({}), torch::zeros({})); }),
             ContainsSubstring("expected sizes (N, ...), got []"));
  CHECK_THAT(error_of([] { BinaryAccuracy().update(torch::zeros({4, 1}), torch::zeros({4})); }),
             ContainsSubstring("with the same shape, got [4, 1] and [4]"));
}
