#pragma once

#include <string>
#include <vector>

namespace sconce {

/// An axis of a chart: its range, and ticks at round numbers.
struct Axis {
  double low = 0;
  double high = 1;
  std::vector<double> ticks = {};
  std::vector<std::string> labels = {};  ///< one per tick
};

/// The options of `axis_of`.
struct AxisOptions {
  int max_ticks = 6;   ///< maximum number of intervals; there may be one more tick
  double pad = 0;      ///< free space at each end, as a fraction of the value range
  bool whole = false;  ///< ticks at whole numbers only
};

/// Returns whether a value can be drawn. The value must be finite, and sums of such values must not
/// overflow.
bool is_drawn(double value);

/// Returns an axis for drawable values from `low` to `high`. If both are equal, the value is
/// centered on the axis. An axis for nonnegative values does not contain negative numbers, unless
/// all values are 0.
Axis axis_of(double low, double high, const AxisOptions& options);

}  // namespace sconce
