#pragma once

#include <string>
#include <vector>

namespace sconce {

/// A chart's axis: its ends, and round numbers between them.
struct Axis {
  double low = 0;
  double high = 1;
  std::vector<double> ticks = {};
  std::vector<std::string> labels = {};  ///< of the ticks
};

/// What an axis is to be like.
struct AxisOptions {
  int most_ticks = 6;  ///< or one more
  double pad = 0;      ///< free at each end, as a part of what lies between the values
  bool whole = false;  ///< ticks at whole numbers only
};

/// Whether a value can be drawn: it is a number, and not so large that sums of it are infinite.
bool is_drawn(double value);

/// Returns an axis of drawn values from `low` to `high`. A constant lies in its middle, and an axis
/// of values that are not negative has no negative numbers.
Axis axis_of(double low, double high, const AxisOptions& options);

}  // namespace sconce
