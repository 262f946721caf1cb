#include "sconce/training/fit_result.hpp"

#include <cmath>

#include "catch.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::MetricValues;

TEST_CASE("MetricValues looks up metrics by name and preserves their order") {
  MetricValues values = {{"b", 2}};
  values.insert("a", 1);
  CHECK(values.contains("a"));
  CHECK_FALSE(values.contains("c"));
  CHECK(values.at("b") == 2);
  CHECK_THROWS_WITH(values.at("c"), ContainsSubstring("expected one of [b, a], got c"));
  CHECK(values.begin()->first == "b");
  const sconce::EpochMetrics epoch = {.loss = 0.5, .metrics = values};
  CHECK(epoch.at("loss") == 0.5);
  CHECK(epoch.at("a") == 1);
  CHECK((epoch.contains("loss") && epoch.contains("b") && !epoch.contains("c")));
}

TEST_CASE(
    "examples_per_second is the total rate over all epochs and is NaN for a fit without epochs") {
  const sconce::FitResult result = {
      {{.examples = 10, .seconds = 1}, {.examples = 20, .seconds = 4}}};
  CHECK(result.examples_per_second() == 6);
  CHECK(std::isnan(sconce::FitResult().examples_per_second()));
}
