#include "report/axis.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace sconce {

namespace {

// mantissa * 10^exponent
struct Step {
  int mantissa = 1;
  int exponent = 0;

  // Small powers of ten are exact, so the result is rounded only once.
  double times(double count) const {
    const double whole = count * mantissa;
    return exponent < 0 ? whole / std::pow(10, -exponent) : whole * std::pow(10, exponent);
  }
};

Step step_of(double least) {
  Step step{.mantissa = 1, .exponent = static_cast<int>(std::floor(std::log10(least)))};
  for (const int mantissa : {1, 2, 5}) {
    step.mantissa = mantissa;
    if (step.times(1) >= least * (1 - 1e-9)) return step;
  }
  return {.mantissa = 1, .exponent = step.exponent + 1};
}

// printf would use the locale's decimal separator.
std::string text_of(double value, std::chars_format format, int precision) {
  char text[400];
  const auto end = std::to_chars(text, std::end(text), value, format, precision).ptr;
  return {text, end};
}

// Formats the value in scientific notation, such as 1.5e-5, up to the last digit that can differ
// between ticks.
std::string scientific(double value, int step_exponent) {
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const int digits = std::clamp(exponent - step_exponent, 0, 16);
  const std::string text = text_of(value, std::chars_format::scientific, digits);
  const auto e = text.find('e');
  return text.substr(0, e + 1) + std::to_string(std::stoi(text.substr(e + 1)));
}

std::string label_of(double value, double largest, int step_exponent) {
  if (value == 0) return "0";
  if (largest >= 1e6 || largest < 1e-3) return scientific(value, step_exponent);
  return text_of(value, std::chars_format::fixed, std::max(0, -step_exponent));
}

}  // namespace

bool is_drawn(double value) {
  return std::abs(value) <= 1e300;
}

Axis axis_of(double low, double high, const AxisOptions& options) {
  const double largest = std::max(std::abs(low), std::abs(high));
  Axis axis{.low = low, .high = high};
  if (largest < 1e-280) {
    axis = {.low = -1, .high = 1};
  } else if (high - low <= 1e-9 * largest) {
    // The range is wide enough to produce distinct ticks. On an axis of whole numbers, ticks are at
    // least 1 apart.
    const double half = options.whole ? std::max(0.5, largest * 1e-9) : largest / 2;
    axis = {.low = low - half, .high = high + half};
  } else {
    const double pad = (high - low) * options.pad;
    axis.low = low >= 0 ? std::max(low - pad, 0.) : low - pad;
    axis.high = high + pad;
  }
  Step step = step_of((axis.high - axis.low) / options.max_ticks);
  if (options.whole && step.exponent < 0) step = {};
  const double count = step.times(1);
  const double first = std::ceil(axis.low / count - 1e-9);
  const double last = std::floor(axis.high / count + 1e-9);
  for (double i = first; i <= last; ++i) axis.ticks.push_back(step.times(i));
  double furthest = 0;
  for (const double tick : axis.ticks) furthest = std::max(furthest, std::abs(tick));
  for (const double tick : axis.ticks) {
    axis.labels.push_back(label_of(tick, furthest, step.exponent));
  }
  return axis;
}

}  // namespace sconce
