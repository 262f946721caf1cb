#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sconce {

/// A line in a chart. NaNs, infinities, and values whose magnitude exceeds 1e300 leave gaps.
struct ChartSeries {
  std::string name = {};       ///< name in the legend
  std::vector<double> x = {};  ///< positions on the x axis, in any order
  std::vector<double> y = {};  ///< one value for each x
};

/// A chart panel with a separate y axis.
struct ChartPanel {
  std::string y_label = {};              ///< label of the y axis
  std::vector<ChartSeries> series = {};  ///< drawn with different colors, dashes, and markers
};

/// Draws a line chart as a 600-pixel-wide SVG. The SVG is self-contained and adapts its colors to
/// the viewer's light or dark theme. A line with few points has a marker at each point. For a line
/// with many points, only the points that affect at least one pixel are kept, so the file stays
/// small. Names may contain any bytes. Long names are truncated, and a tooltip shows the full name.
/// Python: matplotlib's `subplots(sharex=True)` and `plot`.
struct LineChart {
  std::string title = {};               ///< title above the panels
  std::string x_label = {};             ///< label of the x axis
  std::vector<ChartPanel> panels = {};  ///< one or more, stacked over a shared x axis

  /// Returns the SVG, which is well-formed XML 1.0 in UTF-8.
  /// @throw c10::Error if there are no panels, or if `x` and `y` of a series differ in length.
  std::string svg() const;

  /// Writes the SVG to a file in an existing folder. The file becomes visible only once it is
  /// complete.
  /// @throw c10::Error in the same cases as `svg`, or if the file cannot be written. In that case,
  /// the message contains the file name and the cause.
  void save(const std::filesystem::path& file) const;
};

}  // namespace sconce
