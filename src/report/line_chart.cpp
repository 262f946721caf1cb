#include "sconce/report/line_chart.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/axis.hpp"
#include "report/svg.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce {

namespace {

using svg::number;
using svg::tenths;

constexpr double right = svg::chart_width - 28;
constexpr double inset = 8;  // pixels between the frame and the first or last x
constexpr double legend_row = 18;
constexpr double swatch = 30;
constexpr int max_markers = 40;
constexpr size_t colours = 6, dashes = 4, marker_shapes = 4;

// People with color blindness can distinguish these colors. The colors are based on the Okabe-Ito
// palette, darkened for contrast on a white background.
constexpr auto line_style =
    ".grid{stroke:#d8dee4}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".d1{stroke-dasharray:7 4}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}"
    ".s0{stroke:#0072b2}.s1{stroke:#c04f00}.s2{stroke:#00805d}.s3{stroke:#a6478a}"
    ".s4{stroke:#8a6100}.s5{stroke:#57606a}"
    ".m0{fill:#0072b2}.m1{fill:#c04f00}.m2{fill:#00805d}.m3{fill:#a6478a}.m4{fill:#8a6100}"
    ".m5{fill:#57606a}"
    "@media(prefers-color-scheme:dark){.grid{stroke:#30363d}"
    ".s0{stroke:#56b4e9}.s1{stroke:#ff9a52}.s2{stroke:#2fc79a}.s3{stroke:#e79bc7}"
    ".s4{stroke:#f0e442}.s5{stroke:#b1bac4}"
    ".m0{fill:#56b4e9}.m1{fill:#ff9a52}.m2{fill:#2fc79a}.m3{fill:#e79bc7}.m4{fill:#f0e442}"
    ".m5{fill:#b1bac4}}";

struct Point {
  int64_t x = 0, y = 0;  // tenths of a pixel
};
using Run = std::vector<Point>;  // points connected by a line

// The range of the plotted values.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  Axis axis(const AxisOptions& options) const {
    return low <= high ? axis_of(low, high, options) : Axis{};
  }
};

// A panel's position in the image, in pixels.
struct Plot {
  double left = 0, top = 0, bottom = 0;
  Axis x = {}, y = {};

  double x_of(double value) const {
    return left + inset + (value - x.low) / (x.high - x.low) * (right - left - 2 * inset);
  }
  double y_of(double value) const {
    return bottom - (value - y.low) / (y.high - y.low) * (bottom - top);
  }
};

// Appends the visible points of a pixel column: the first, the lowest, the highest, and the last
// point.
void append_seen(const Run& column, Run& run) {
  const auto below = [](const Point& a, const Point& b) { return a.y < b.y; };
  const auto [low, high] = std::minmax_element(column.begin(), column.end(), below);
  for (auto point = column.begin(); point != column.end(); ++point) {
    if (point == column.begin() || point == low || point == high || point + 1 == column.end()) {
      run.push_back(*point);
    }
  }
}

// Splits the series at its gaps. A gap in the same pixel column as a point is not visible and does
// not split the series.
std::vector<Run> runs_of(const ChartSeries& series, const Plot& plot) {
  std::vector<Run> runs(1);
  Run column;
  int64_t current = 0;
  const auto end_column = [&] {
    if (!column.empty()) {
      append_seen(column, runs.back());
    } else if (!runs.back().empty()) {
      runs.emplace_back();
    }
    column.clear();
  };
  for (size_t i = 0; i < series.x.size(); ++i) {
    const bool has_x = is_drawn(series.x[i]);
    const double x = has_x ? plot.x_of(series.x[i]) : 0;
    const auto here = static_cast<int64_t>(x);
    if (here != current) end_column();
    current = here;
    if (!has_x || !is_drawn(series.y[i])) continue;
    column.push_back({std::llround(x * 10), std::llround(plot.y_of(series.y[i]) * 10)});
  }
  end_column();
  if (runs.back().empty()) runs.pop_back();
  return runs;
}

// Formats two numbers for an SVG path, separated by a space or by the minus sign of the second
// number.
std::string pair_of(int64_t x, int64_t y) {
  return tenths(x) + (y < 0 ? "" : " ") + tenths(y);
}

std::string path_of(const Run& run) {
  std::string path = "M" + pair_of(run[0].x, run[0].y);
  for (size_t i = 1; i < run.size(); ++i) {
    path += i == 1 ? 'l' : ' ';
    path += pair_of(run[i].x - run[i - 1].x, run[i].y - run[i - 1].y);
  }
  return path;
}

std::string marker_of(const Point& at, size_t series) {
  switch (series % marker_shapes) {
    case 0:
      return "M" + pair_of(at.x - 35, at.y) + "a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z";
    case 1:
      return "M" + pair_of(at.x - 30, at.y - 30) + "h6v6h-6z";
    case 2:
      return "M" + pair_of(at.x, at.y - 45) + "l4.5 8h-9z";
    default:
      return "M" + pair_of(at.x, at.y - 45) + "l4.5 4.5-4.5 4.5-4.5-4.5z";
  }
}

std::string draw_paths(const std::string& lines, const std::string& markers, size_t series) {
  const std::string colour = std::to_string(series % colours);
  const std::string dash = std::to_string(series % dashes);
  std::string drawn;
  if (!lines.empty()) drawn += svg::path("line s" + colour + " d" + dash, lines);
  if (!markers.empty()) drawn += svg::path("m" + colour, markers);
  return drawn;
}

std::string draw_runs(const std::vector<Run>& runs, size_t series) {
  size_t points = 0;
  for (const auto& run : runs) points += run.size();
  std::string lines, markers;
  for (const auto& run : runs) {
    if (run.size() > 1) lines += path_of(run);
    if (run.size() > 1 && points > max_markers) continue;
    for (const auto& point : run) markers += marker_of(point, series);
  }
  return draw_paths(lines, markers, series);
}

// A single series with the same name as its axis does not need a legend.
bool has_legend(const ChartPanel& panel) {
  return panel.series.size() > 1 || (panel.series.size() == 1 && !panel.series[0].name.empty() &&
                                     panel.series[0].name != panel.y_label);
}

// Draws the legend at `top`, and moves `top` below it.
std::string draw_legend(const ChartPanel& panel, double left, double& top) {
  if (!has_legend(panel)) return {};
  constexpr double room = 200, gap = 18;
  std::string drawn;
  double x = left;
  for (size_t i = 0; i < panel.series.size(); ++i) {
    const std::string& name = panel.series[i].name;
    const double wide = swatch + 6 + std::min(room, svg::text_width(name));
    if (x > left && x + wide > right) {
      x = left;
      top += legend_row;
    }
    const auto from = std::llround(x * 10), middle = std::llround((top + legend_row / 2) * 10);
    const auto length = std::llround(swatch * 10);
    drawn += draw_paths(path_of({{from, middle}, {from + length, middle}}),
                        marker_of({from + length / 2, middle}, i), i);
    drawn += svg::text(x + swatch + 6, top + legend_row / 2 + 4, name, {.room = room});
    x += wide + gap;
  }
  top += legend_row + 4;
  return drawn;
}

std::string line_of(const char* style_class, double x1, double y1, double x2, double y2) {
  return svg::path(style_class,
                   'M' + number(x1) + ' ' + number(y1) + 'L' + number(x2) + ' ' + number(y2));
}

std::string draw_axes(const Plot& plot, const std::string& y_label, bool is_last) {
  std::string drawn;
  for (size_t i = 0; i < plot.y.ticks.size(); ++i) {
    const double y = plot.y_of(plot.y.ticks[i]);
    drawn += line_of("grid", plot.left, y, right, y);
    drawn += svg::text(plot.left - 7, y + 4, plot.y.labels[i],
                       {.anchor = "end", .style_class = "muted"});
  }
  for (size_t i = 0; i < plot.x.ticks.size(); ++i) {
    const double x = plot.x_of(plot.x.ticks[i]);
    drawn += line_of("frame", x, plot.bottom, x, plot.bottom + 4);
    if (!is_last) continue;
    drawn += svg::text(x, plot.bottom + 18, plot.x.labels[i],
                       {.anchor = "middle", .style_class = "muted"});
  }
  const double height = plot.bottom - plot.top;
  return drawn +
         svg::path("frame", svg::rectangle(plot.left, plot.top, right - plot.left, height)) +
         svg::text(20, plot.top + height / 2, y_label,
                   {.room = height + 16, .anchor = "middle", .is_turned = true});
}

std::string draw_series(const ChartPanel& panel, const Plot& plot) {
  std::string drawn;
  for (size_t i = 0; i < panel.series.size(); ++i) {
    drawn += draw_runs(runs_of(panel.series[i], plot), i);
  }
  if (!drawn.empty()) return drawn;
  return svg::text((plot.left + right) / 2, (plot.top + plot.bottom) / 2 + 4, "no finite value",
                   {.anchor = "middle", .style_class = "muted"});
}

// Limits the number of ticks so that the labels do not overlap.
Axis x_axis(const std::vector<ChartPanel>& panels, double plot_width) {
  Range range;
  bool whole = true;
  for (const auto& panel : panels) {
    for (const auto& series : panel.series) {
      for (const double x : series.x) {
        if (!is_drawn(x)) continue;
        range.add(x);
        whole = whole && x == std::floor(x);
      }
    }
  }
  AxisOptions options{.max_ticks = 10, .whole = whole};
  Axis axis = range.axis(options);
  while (options.max_ticks > 1 &&
         (svg::widest(axis.labels) + 14) * static_cast<double>(axis.ticks.size()) > plot_width) {
    --options.max_ticks;
    axis = range.axis(options);
  }
  return axis;
}

Axis y_axis(const ChartPanel& panel, double height) {
  Range range;
  for (const auto& series : panel.series) {
    for (const double y : series.y) {
      if (is_drawn(y)) range.add(y);
    }
  }
  return range.axis({.max_ticks = std::min(6, static_cast<int>(height / 22)), .pad = 0.06});
}

void check(const LineChart& chart) {
  TORCH_CHECK(!chart.panels.empty(), "sconce::LineChart: expected at least one panel, got none");
  for (const auto& panel : chart.panels) {
    for (const auto& series : panel.series) {
      TORCH_CHECK(series.x.size() == series.y.size(), "sconce::LineChart: expected ",
                  series.x.size(), " y values (one for each x value) in the series '", series.name,
                  "', got ", series.y.size());
    }
  }
}

}  // namespace

std::string LineChart::svg() const {
  check(*this);
  const double height = panels.size() == 1 ? 240 : panels.size() == 2 ? 150 : 110;
  std::vector<Axis> y_axes;
  double labels = 0;
  for (const auto& panel : panels) {
    labels = std::max(labels, svg::widest(y_axes.emplace_back(y_axis(panel, height)).labels));
  }
  Plot plot{.left = 36 + labels};
  plot.x = x_axis(panels, right - plot.left);
  std::string body;
  double top = 42;
  for (size_t i = 0; i < panels.size(); ++i) {
    body += draw_legend(panels[i], plot.left, top);
    plot.top = top;
    plot.bottom = top + height;
    plot.y = std::move(y_axes[i]);
    body += draw_axes(plot, panels[i].y_label, i + 1 == panels.size());
    body += draw_series(panels[i], plot);
    top = plot.bottom + 16;
  }
  body += svg::text((plot.left + right) / 2, plot.bottom + 38, x_label,
                    {.room = right - plot.left, .anchor = "middle"});
  return svg::document(
      {.height = plot.bottom + 50, .title = title, .style = line_style, .body = body});
}

void LineChart::save(const std::filesystem::path& file) const {
  io::write_file(file, svg(), "sconce::LineChart::save");
}

}  // namespace sconce
