#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sconce {

/// A line of a chart. Values that are nan, infinite or above 1e300 are gaps.
struct ChartSeries {
  std::string name = {};       ///< Name in the legend
  std::vector<double> x = {};  ///< Positions on the x axis, in any order
  std::vector<double> y = {};  ///< One value for each x
};

/// A panel of a chart, with its own y axis.
struct ChartPanel {
  std::string y_label = {};              ///< Label of the y axis
  std::vector<ChartSeries> series = {};  ///< They differ in color, dashes and markers
};

/// A line chart as an SVG of 600 pixels width. It needs no other file and uses the light or dark
/// colors that the viewer prefers. A line with few points has a marker at each point. A line with
/// many points keeps only the points that change a pixel, so the file stays small. Names may be any
/// bytes; long ones are cut, and a tooltip shows them whole.
/// Python: matplotlib's `subplots(sharex=True)` and `plot`.
struct LineChart {
  std::string title = {};               ///< Title above the panels
  std::string x_label = {};             ///< Label of the x axis
  std::vector<ChartPanel> panels = {};  ///< One or more, stacked over the same x axis

  /// Returns the SVG, which is well-formed XML 1.0 in UTF-8.
  /// @throw c10::Error if there is no panel, or if a series has different numbers of x and y.
  std::string svg() const;

  /// Writes the SVG to a file in an existing folder. The file is whole or not there.
  /// @throw c10::Error like `svg`, or naming the file and the cause if it cannot be written.
  void save(const std::filesystem::path& file) const;
};

}  // namespace sconce
