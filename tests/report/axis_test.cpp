#include "report/axis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "catch.hpp"
#include "support/sanitized.hpp"

using sconce::axis_of;
using Labels = std::vector<std::string>;

TEST_CASE("an axis has round tick labels and at most max_ticks intervals between ticks") {
  CHECK(axis_of(0, 1, {.max_ticks = 5}).labels == Labels{"0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(axis_of(0, 1, {.max_ticks = 4}).labels == Labels{"0", "0.5", "1.0"});
  CHECK(axis_of(1, 1000, {.max_ticks = 5}).labels == Labels{"200", "400", "600", "800", "1000"});
  CHECK(axis_of(-3, 7, {.max_ticks = 2}).labels == Labels{"0", "5"});
  CHECK(axis_of(0.9132, 0.9871, {.max_ticks = 4}).labels == Labels{"0.92", "0.94", "0.96", "0.98"});
}

TEST_CASE("tick labels with very large or very small values use exponents") {
  CHECK(axis_of(1e-5, 4e-5, {.max_ticks = 3}).labels == Labels{"1e-5", "2e-5", "3e-5", "4e-5"});
  CHECK(axis_of(0, 2e6, {.max_ticks = 4}).labels == Labels{"0", "5e5", "1.0e6", "1.5e6", "2.0e6"});
  CHECK(axis_of(0, 65536, {.max_ticks = 4}).labels == Labels{"0", "20000", "40000", "60000"});
}

TEST_CASE("a constant value is placed in the middle of its axis") {
  for (const double value : {1., 0.05, -3., 1e-12, 1e200, 0.}) {
    const auto axis = axis_of(value, value, {});
    CHECK(axis.low < value);
    CHECK(axis.high > value);
    CHECK(std::abs((axis.low + axis.high) / 2 - value) <= 1e-9 * std::abs(value));
  }
  for (const double whole : {1.7e18, -1.7e18, 1e300}) {  // the next number is more than one away
    const auto axis = axis_of(whole, whole, {.whole = true});
    CHECK(axis.low < whole);
    CHECK(axis.high > whole);
    CHECK((!axis.ticks.empty() && axis.ticks.size() <= 8));
  }
  const auto epoch = axis_of(1, 1, {.whole = true});
  CHECK(epoch.labels == Labels{"1"});
}

TEST_CASE("an axis is padded at both ends but does not extend below 0 for positive values") {
  const auto axis = axis_of(0.1, 1.1, {.pad = 0.2});
  CHECK(axis.low == 0);
  CHECK(std::abs(axis.high - 1.3) < 1e-12);
  CHECK(axis_of(-1, 1, {.pad = 0.1}).low < -1);
}

TEST_CASE("an axis with integer values has integer ticks") {
  CHECK(axis_of(1, 3, {.max_ticks = 10, .whole = true}).labels == Labels{"1", "2", "3"});
}

TEST_CASE("is_drawn returns false for NaN, infinite, and very large values") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {std::nan(""), infinity, -infinity, 1e301, -1e301}) {
    CHECK_FALSE(sconce::is_drawn(value));
  }
  for (const double value : {0., -1e300, 1e300, 5e-324}) CHECK(sconce::is_drawn(value));
}

TEST_CASE("for any two values, the axis has a few ticks with distinct labels") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> mantissa(-10, 10);
  std::uniform_int_distribution<int> exponent(-320, 299), near(-12, 2);
  for (int i = 0; i < sconce::test::rounds(20'000, 2'000); ++i) {
    const double one = mantissa(random) * std::pow(10, exponent(random));
    const double other = i % 2 == 0 ? one * (1 + mantissa(random) * std::pow(10, near(random)))
                                    : mantissa(random) * std::pow(10, exponent(random));
    const double low = std::min(one, other), high = std::max(one, other);
    if (!sconce::is_drawn(low) || !sconce::is_drawn(high)) continue;
    const auto axis = axis_of(low, high, {.pad = 0.06});
    INFO(low << " to " << high);
    REQUIRE((std::isfinite(axis.low) && std::isfinite(axis.high) && axis.low < axis.high));
    REQUIRE((axis.low <= low && high <= axis.high));
    REQUIRE((!axis.ticks.empty() && axis.ticks.size() <= 8));
    REQUIRE(axis.labels.size() == axis.ticks.size());
    REQUIRE(std::adjacent_find(axis.labels.begin(), axis.labels.end()) == axis.labels.end());
    for (const auto& label : axis.labels) REQUIRE(label.size() <= 24);
    for (const double tick : axis.ticks) {
      const double slack = (axis.high - axis.low) * 1e-6;
      REQUIRE((tick >= axis.low - slack && tick <= axis.high + slack));
    }
  }
}
