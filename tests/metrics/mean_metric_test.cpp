#include "sconce/metrics/mean_metric.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::MeanMetric;

TEST_CASE("MeanMetric weights each loss by the number of examples in its batch") {
  MeanMetric mean;
  CHECK(std::isnan(mean.compute().item<double>()));
  mean.update(torch::tensor(2.0f), 30);
  mean.update(torch::tensor(6.0f, torch::kHalf), 10);
  CHECK(mean.compute().item<double>() == 3);
  mean.update(torch::tensor({1.0, 5.0}), torch::tensor({20, 0}));
  CHECK(mean.compute().item<double>() == Catch::Approx(140.0 / 60));
}

TEST_CASE("MeanMetric is NaN after a NaN loss") {
  MeanMetric mean;
  mean.update(torch::tensor(1.0));
  mean.update(torch::tensor(std::numeric_limits<double>::quiet_NaN()));
  CHECK(std::isnan(mean.compute().item<double>()));
}

TEST_CASE("MeanMetric rejects values that are not real numbers") {
  MeanMetric mean;
  CHECK_THAT(sconce::test::error_of([&] { mean.update(torch::zeros({}, torch::kComplexFloat)); }),
             ContainsSubstring("sconce::metrics::MeanMetric: expected a value of real numbers, got "
                               "ComplexFloat"));
  CHECK_THAT(sconce::test::error_of([&] { mean.update({}); }),
             ContainsSubstring("got an undefined tensor"));
}
