#include "sconce/metrics/classification.hpp"

#include "catch.hpp"
#include "metrics/random_cases.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::Accuracy;
using sconce::metrics::Average;
using sconce::metrics::Recall;
using sconce::test::error_of;

TEST_CASE("metrics match torchmetrics in 2,020 random cases") {
  const auto expected = sconce::test::metric_values();
  REQUIRE(expected.size() >= 2020);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto value = sconce::test::metric_of_case(i).to(torch::kDouble).flatten();
    INFO("case " << i << " of tests/reference/metrics.py: expected " << expected[i] << ", got "
                 << value);
    REQUIRE(value.sizes() == expected[i].sizes());
    CHECK(value.allclose(expected[i], 1.3e-6, 1e-7, /*equal_nan=*/true));
  }
}

TEST_CASE("accuracy for (N, C, d1, ...) logits counts positions rather than rows") {
  // Three of the four pixels in the first image are correct, and one of the four pixels in the
  // second image is correct.
  const auto target = torch::tensor({0, 1, 1, 0, 0, 0, 0, 0}).view({2, 2, 2});
  const auto answers = torch::tensor({0, 1, 1, 1, 0, 1, 1, 1}).view({2, 2, 2});
  const auto logits = torch::one_hot(answers, 2).movedim(-1, 1).to(torch::kFloat);
  Accuracy accuracy;
  accuracy.update(logits, target);
  CHECK(accuracy.compute().item<double>() == 0.5);
  CHECK(accuracy.compute().dim() == 0);
  accuracy.update(answers.narrow(0, 0, 1), target.narrow(0, 0, 1));
  CHECK(accuracy.compute().item<double>() == 7.0 / 12);
}

TEST_CASE(
    "with top_k set, accuracy counts a prediction as correct if the target is among the k largest "
    "logits") {
  const auto logits = torch::tensor({{0.1, 0.5, 0.4}, {0.6, 0.1, 0.3}, {0.2, 0.3, 0.5}});
  Accuracy accuracy({.top_k = 2});
  accuracy.update(logits, torch::tensor({2, 1, 2}));
  CHECK(accuracy.compute().item<double>() == 2.0 / 3);
}

TEST_CASE("classification metrics are 0 before the first batch and after an empty batch") {
  Accuracy accuracy;
  CHECK(accuracy.compute().item<double>() == 0);
  accuracy.update(torch::zeros({0, 3}), torch::zeros({0}, torch::kLong));
  CHECK(accuracy.compute().item<double>() == 0);
  Recall recall({.num_classes = 3, .average = Average::none, .top_k = 2});
  recall.update(torch::zeros({0, 3, 2}), torch::zeros({0, 2}, torch::kLong));
  CHECK(recall.compute().equal(torch::zeros({3}, torch::kDouble)));
}

TEST_CASE("an out-of-range label counts as incorrect") {
  const auto preds = torch::tensor({0, 1, 5, -3});
  const auto target = torch::tensor({0, 7, 1, 1});
  Accuracy accuracy({.num_classes = 2});
  accuracy.update(preds, target);
  CHECK(accuracy.compute().item<double>() == 0.25);
  sconce::metrics::Precision precision({.num_classes = 2, .average = Average::none});
  precision.update(preds, target);
  CHECK(precision.compute().equal(torch::tensor({1.0, 0.0}, torch::kDouble)));
  Recall recall({.num_classes = 2, .average = Average::none});
  recall.update(preds, target);
  CHECK(recall.compute().equal(torch::tensor({1.0, 0.0}, torch::kDouble)));
}

TEST_CASE("an out-of-range label counts as incorrect even if preds and target agree") {
  const auto target = torch::tensor({2, -100, 10, 3});
  const auto preds = torch::tensor({1, -100, 10, 3});
  using sconce::metrics::F1Score;
  using sconce::metrics::Precision;
  const auto micro = [&](auto metric) {
    metric.update(preds, target);
    return metric.compute().template item<double>();
  };
  CHECK(micro(Accuracy({.num_classes = 10})) == 0.25);
  CHECK(micro(Precision({.num_classes = 10})) == 0.25);
  CHECK(micro(Recall({.num_classes = 10})) == 0.25);
  CHECK(micro(F1Score({.num_classes = 10})) == 0.25);
  CHECK(micro(Accuracy()) == 0.5);  // 10 may be a class
  CHECK(micro(Accuracy({.num_classes = 10, .ignore_index = -100})) == 1.0 / 3);
}

TEST_CASE("class labels can have any integer dtype or bool") {
  for (const auto type : {torch::kByte, torch::kInt, torch::kBool}) {
    Accuracy accuracy({.num_classes = 2, .average = Average::macro});
    accuracy.update(torch::tensor({0, 1, 1, 0}).to(type), torch::tensor({0, 1, 0, 0}).to(type));
    CHECK(accuracy.compute().item<double>() == Catch::Approx((2.0 / 3 + 1) / 2));
  }
}

TEST_CASE("classification metrics reject invalid options with an error that names the metric") {
  CHECK_THAT(error_of([] { Recall recall({.average = Average::macro}); }),
             ContainsSubstring("sconce::metrics::Recall: expected num_classes, which can be "
                               "omitted only for the micro average"));
  CHECK_THAT(error_of([] { Recall recall({.num_classes = 1}); }),
             ContainsSubstring("expected num_classes to be at least 2, got 1"));
  CHECK_THAT(
      error_of([] { Accuracy accuracy({.num_classes = 3, .top_k = 4}); }),
      ContainsSubstring("sconce::metrics::Accuracy: expected top_k to be from 1 to num_classes, "
                        "got 4"));
  CHECK_THAT(error_of([] { Accuracy accuracy({.top_k = 0}); }), ContainsSubstring("got 0"));
}

TEST_CASE("classification metrics reject invalid sizes and types before changing any sum") {
  const auto message = [](const torch::Tensor& preds, const torch::Tensor& target,
                          int64_t top_k = 1) {
    Accuracy accuracy({.num_classes = 3, .top_k = top_k});
    const auto error = error_of([&] { accuracy.update(preds, target); });
    CHECK_THAT(error, ContainsSubstring("sconce::metrics::Accuracy: expected "));
    CHECK(accuracy.sums().equal(torch::zeros({3}, torch::kDouble)));
    return error;
  };
  const auto target = torch::zeros({4}, torch::kLong);
  CHECK_THAT(message(torch::zeros({5, 3}), target), ContainsSubstring("got [5, 3] for [4]"));
  CHECK_THAT(message(torch::zeros({4, 3, 2}), target), ContainsSubstring("got [4, 3, 2] for [4]"));
  CHECK_THAT(message(torch::zeros({4, 3, 2}), torch::zeros({4, 5}, torch::kLong)),
             ContainsSubstring("got [4, 3, 2] for [4, 5]"));
  CHECK_THAT(message(torch::zeros({4, 2}), target),
             ContainsSubstring("logits of 3 classes, got [4, 2]"));
  CHECK_THAT(message(torch::zeros({4}), target), ContainsSubstring("got preds [4] of Float"));
  CHECK_THAT(message(torch::zeros({4, 3}, torch::kLong), target),
             ContainsSubstring("got preds [4, 3] of Long"));
  CHECK_THAT(message(torch::zeros({4, 3}), torch::zeros({4, 3})),
             ContainsSubstring("a target of integer classes (N, ...), got [4, 3] of Float"));
  CHECK_THAT(message(torch::zeros({3}), torch::zeros({}, torch::kLong)),
             ContainsSubstring("integer classes (N, ...), got [] of Long"));
  CHECK_THAT(message(target, target, 2),
             ContainsSubstring("logits (N, C, ...) for a top_k of 2, got classes [4]"));
  CHECK_THAT(message({}, target), ContainsSubstring("an undefined tensor"));
  CHECK_THAT(message(torch::zeros({4}, torch::dtype(torch::kLong).device(torch::kMeta)), target),
             ContainsSubstring("on the same device, got meta and cpu"));
  CHECK_THAT(error_of([&] { Accuracy({.top_k = 4}).update(torch::zeros({4, 3}), target); }),
             ContainsSubstring("logits of at least 4 classes (the top_k), got [4, 3]"));
}
