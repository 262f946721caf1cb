#include "sconce/metrics/regression.hpp"

#include <cmath>

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::MeanAbsoluteError;
using sconce::metrics::MeanSquaredError;
using sconce::test::error_of;

TEST_CASE("mean errors are over all elements, of batches of any size") {
  MeanSquaredError squared;
  MeanSquaredError root({.squared = false});
  MeanAbsoluteError absolute;
  for (const auto& batch : {torch::tensor({{1.0, 3.0}, {0.0, 0.0}}), torch::tensor({6.0})}) {
    for (sconce::metrics::Metric* metric :
         std::initializer_list<sconce::metrics::Metric*>{&squared, &root, &absolute}) {
      metric->update(batch, torch::zeros_like(batch));
    }
  }
  CHECK(squared.compute().item<double>() == 46.0 / 5);
  CHECK(root.compute().item<double>() == std::sqrt(46.0 / 5));
  CHECK(absolute.compute().item<double>() == 2);
}

TEST_CASE("mean errors before any example are nan, and an empty batch adds nothing") {
  MeanSquaredError metric;
  CHECK(std::isnan(metric.compute().item<double>()));
  metric.update(torch::ones({2}), torch::zeros({2}));
  metric.update(torch::zeros({0, 3}), torch::zeros({0, 3}));
  CHECK(metric.compute().item<double>() == 1);
}

TEST_CASE("errors of float16 and of integers are those of the numbers") {
  MeanSquaredError metric;
  // 60,000 squared is inf in float16. torchmetrics computes in the type of the tensors.
  metric.update(torch::full({3}, 60000, torch::kHalf), torch::zeros({3}, torch::kHalf));
  CHECK(metric.compute().item<double>() == Catch::Approx(3.6e9));
  MeanAbsoluteError absolute;
  // 0 - 255 is 1 in uint8.
  absolute.update(torch::zeros({3}, torch::kByte), torch::full({3}, 255, torch::kByte));
  CHECK(absolute.compute().item<double>() == 255);
}

TEST_CASE("mean errors refuse sizes that would be broadcast, by name") {
  MeanSquaredError metric;
  CHECK_THAT(error_of([&] { metric.update(torch::zeros({4, 1}), torch::zeros({4})); }),
             ContainsSubstring("sconce::metrics::MeanSquaredError: expected preds and target of "
                               "the same sizes, got [4, 1] and [4]"));
  MeanAbsoluteError outputs({.num_outputs = 2});
  CHECK_THAT(error_of([&] { outputs.update(torch::zeros({4, 3}), torch::zeros({4, 3})); }),
             ContainsSubstring("sconce::metrics::MeanAbsoluteError: expected sizes (N, 2), got "
                               "[4, 3]"));
  CHECK_THAT(error_of([] { MeanAbsoluteError none({.num_outputs = 0}); }),
             ContainsSubstring("expected num_outputs of 1 or more, got 0"));
  const auto complex = torch::zeros({2}, torch::kComplexFloat);
  CHECK_THAT(error_of([&] { metric.update(complex, complex); }),
             ContainsSubstring("expected real numbers, got ComplexFloat"));
}
