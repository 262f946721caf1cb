#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sconce {

/// A line of a chart. A value that is nan or infinite, or above 1e300, is a gap in it.
struct ChartSeries {
  std::string name = {};  ///< in the legend
  std::vector<double> x = {};
  std::vector<double> y = {};  ///< as many as x
};

/// A part of a chart with a y axis of its own.
struct ChartPanel {
  std::string y_label = {};
  std::vector<ChartSeries> series = {};  ///< told apart by colour, dashes and markers
};

/// A picture of lines, 600 pixels wide, as an SVG that needs no other file and follows the viewer's
/// choice of light or dark. A line of few points has a marker at each, one of many is drawn to the
/// pixel, so that the file stays small. Names that are too long are cut, and are whole in a
/// tooltip; they may be any bytes. Python: matplotlib's `subplots(sharex=True)` and `plot`.
struct LineChart {
  std::string title = {};
  std::string x_label = {};
  std::vector<ChartPanel> panels = {};  ///< one or more, one below the other over the same x

  /// Returns the file's text: well-formed XML 1.0, in UTF-8.
  /// @throw c10::Error if there is no panel, or a series with as many x as y is not.
  std::string svg() const;

  /// Writes it. The file is whole or not there; its folder must be there.
  /// @throw c10::Error as `svg`, or naming the file and the cause.
  void save(const std::filesystem::path& file) const;
};

}  // namespace sconce
