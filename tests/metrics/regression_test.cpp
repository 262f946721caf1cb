#include "sconce/metrics/regression.hpp"

#include <cmath>

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::metrics::MeanAbsoluteError;
using sconce::metrics::MeanAbsolutePercentageError;
using sconce::metrics::MeanSquaredError;
using sconce::metrics::Multioutput;
using sconce::metrics::R2Score;
using sconce::test::error_of;

TEST_CASE("mean errors are averaged over all elements, even for batches of different sizes") {
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

TEST_CASE("a mean error is NaN before the first example, and an empty batch adds nothing") {
  MeanSquaredError metric;
  CHECK(std::isnan(metric.compute().item<double>()));
  metric.update(torch::ones({2}), torch::zeros({2}));
  metric.update(torch::zeros({0, 3}), torch::zeros({0, 3}));
  CHECK(metric.compute().item<double>() == 1);
}

TEST_CASE("mean errors of float16 and integer tensors do not overflow") {
  MeanSquaredError metric;
  // The square of 60,000 overflows to inf in float16. In torchmetrics, the metric is computed in
  // the tensors' dtype.
  metric.update(torch::full({3}, 60000, torch::kHalf), torch::zeros({3}, torch::kHalf));
  CHECK(metric.compute().item<double>() == Catch::Approx(3.6e9));
  MeanAbsoluteError absolute;
  // In uint8, 0 - 255 is 1.
  absolute.update(torch::zeros({3}, torch::kByte), torch::full({3}, 255, torch::kByte));
  CHECK(absolute.compute().item<double>() == 255);
}

TEST_CASE("mean errors reject inputs that would need broadcasting") {
  MeanSquaredError metric;
  CHECK_THAT(error_of([&] { metric.update(torch::zeros({4, 1}), torch::zeros({4})); }),
             ContainsSubstring("sconce::metrics::MeanSquaredError: expected preds and target with "
                               "the same shape, got [4, 1] and [4]"));
  MeanAbsoluteError outputs({.num_outputs = 2});
  CHECK_THAT(error_of([&] { outputs.update(torch::zeros({4, 3}), torch::zeros({4, 3})); }),
             ContainsSubstring("sconce::metrics::MeanAbsoluteError: expected sizes (N, 2), got "
                               "[4, 3]"));
  CHECK_THAT(error_of([] { MeanAbsoluteError none({.num_outputs = 0}); }),
             ContainsSubstring("expected num_outputs to be at least 1, got 0"));
  const auto complex = torch::zeros({2}, torch::kComplexFloat);
  CHECK_THAT(error_of([&] { metric.update(complex, complex); }),
             ContainsSubstring("expected real-valued tensors, got ComplexFloat"));
}

// The expected values were computed by torchmetrics 1.9.0 after set_dtype(torch.float64).
TEST_CASE("MeanAbsolutePercentageError matches torchmetrics") {
  MeanAbsolutePercentageError metric;
  CHECK(std::isnan(metric.compute().item<double>()));
  metric.update(torch::tensor({0.9, 15.0, 1.2e6}, torch::kDouble),
                torch::tensor({1.0, 10.0, 1e6}, torch::kDouble));
  CHECK(metric.compute().item<double>() == Catch::Approx(0.26666666666666666).epsilon(1e-12));
  metric.update(torch::zeros({0, 3}), torch::zeros({0, 3}));
  metric.update(torch::tensor({{2, 0}}), torch::tensor({{0, -4}}));
  CHECK(metric.compute().item<double>() == Catch::Approx(341880.70188034186).epsilon(1e-12));
  CHECK_THAT(error_of([&] { metric.update(torch::zeros({4, 1}), torch::zeros({4})); }),
             ContainsSubstring("sconce::metrics::MeanAbsolutePercentageError: expected preds and "
                               "target with the same shape, got [4, 1] and [4]"));
}

TEST_CASE("MeanAbsolutePercentageError returns the same value for transposed inputs") {
  const auto preds = torch::tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  MeanAbsolutePercentageError strided, packed;
  strided.update(preds.t(), preds.t() + 2);
  packed.update(preds, preds + 2);
  CHECK(strided.compute().item<double>() == Catch::Approx(packed.compute().item<double>()));
}

TEST_CASE("R2Score matches torchmetrics") {
  R2Score score;
  score.update(torch::tensor({2.5, 0.0}), torch::tensor({3.0, -0.5}));
  score.update(torch::zeros({0}), torch::zeros({0}));
  score.update(torch::tensor({{2.0}, {8.0}}), torch::tensor({{2.0}, {7.0}}));
  CHECK(score.compute().item<double>() == Catch::Approx(0.9486081370449679).epsilon(1e-12));
  CHECK(score.compute().dim() == 0);
  const auto preds = torch::tensor({{0, 2}, {-1, 2}, {8, -5}});
  const auto target = torch::tensor({{0.5, 1.0}, {-1.0, 1.0}, {7.0, -6.0}});
  const auto value = [&](Multioutput multioutput, int64_t adjusted) {
    R2Score outputs({.num_outputs = 2, .adjusted = adjusted, .multioutput = multioutput});
    outputs.update(preds, target);
    return outputs.compute();
  };
  const auto raw = value(Multioutput::raw_values, 0);
  CHECK(raw.allclose(torch::tensor({0.9654377880184332, 0.9081632653061225}, torch::kDouble)));
  CHECK(value(Multioutput::uniform_average, 0).item<double>() == Catch::Approx(0.9368005266622779));
  CHECK(value(Multioutput::variance_weighted, 0).item<double>() ==
        Catch::Approx(0.9382566585956417));
  CHECK(value(Multioutput::uniform_average, 1).item<double>() == Catch::Approx(0.8736010533245557));
  // Two regressors are too many for three examples.
  CHECK(value(Multioutput::raw_values, 2).equal(raw));
}

TEST_CASE("R2Score is NaN for fewer than two examples and matches Python for constant targets") {
  R2Score score;
  CHECK(std::isnan(score.compute().item<double>()));
  score.update(torch::ones({1}), torch::ones({1}));
  CHECK(std::isnan(score.compute().item<double>()));
  score.update(torch::ones({1}), torch::ones({1}));
  CHECK(score.compute().item<double>() == 1);
  score.update(torch::full({1}, 3), torch::ones({1}));
  CHECK(score.compute().item<double>() == 0);
  // The sum of squares of targets that differ by 0.001 is treated as 0. For `near`, the sum of
  // squared residuals is also treated as 0.
  const auto target = torch::tensor({0.001, 0.0});
  R2Score near, far;
  near.update(target.flip(0), target);
  CHECK(near.compute().item<double>() == 1);
  far.update(target + 1, target);
  CHECK(far.compute().item<double>() == 0);
}

TEST_CASE("R2Score rejects invalid sizes and options") {
  R2Score score;
  CHECK_THAT(error_of([&] { score.update(torch::zeros({4, 2}), torch::zeros({4, 2})); }),
             ContainsSubstring("sconce::metrics::R2Score: expected sizes (N, 1), got [4, 2]"));
  CHECK_THAT(error_of([&] { score.update(torch::zeros({4, 1}), torch::zeros({4})); }),
             ContainsSubstring("with the same shape, got [4, 1] and [4]"));
  CHECK_THAT(
      error_of([] { R2Score({.num_outputs = 2}).update(torch::ones({2}), torch::ones({2})); }),
      ContainsSubstring("expected sizes (N, 2), got [2]"));
  CHECK_THAT(error_of([] { R2Score none({.num_outputs = 0}); }),
             ContainsSubstring("expected num_outputs to be at least 1, got 0"));
  CHECK_THAT(error_of([] { R2Score less({.adjusted = -1}); }),
             ContainsSubstring("expected adjusted to be at least 0, got -1"));
  const auto complex = torch::zeros({2}, torch::kComplexFloat);
  CHECK_THAT(error_of([&] { score.update(complex, complex); }),
             ContainsSubstring("expected real-valued tensors, got ComplexFloat"));
}
