#include "sconce/report/line_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/svg.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::ChartPanel;
using sconce::ChartSeries;
using sconce::LineChart;
using sconce::test::error_of;
using sconce::test::lines_of;
using sconce::test::svg_problem;
using sconce::test::texts_of;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

ChartSeries by_epoch(const std::string& name, const std::vector<double>& y) {
  ChartSeries series{.name = name, .y = y};
  for (size_t i = 1; i <= y.size(); ++i) series.x.push_back(static_cast<double>(i));
  return series;
}

LineChart chart_of(const std::vector<double>& y) {
  return {.title = "Training",
          .x_label = "epoch",
          .panels = {{.y_label = "loss", .series = {by_epoch("train", y)}}}};
}

// These functions count the lines or markers of the first series, excluding the legend.
size_t lines(const std::string& svg) {
  return lines_of(svg, "line s0 d0").size() - 1;
}
size_t markers(const std::string& svg) {
  return lines_of(svg, "m0").size() - 1;
}

}  // namespace

TEST_CASE("a line chart contains its title, its labels, round numbers, and a legend") {
  const auto svg = chart_of({2.3, 1.1, 0.7}).svg();
  CHECK(svg_problem(svg) == "");
  const auto texts = texts_of(svg);
  for (const char* text : {"Training", "epoch", "loss", "train", "1", "2", "3", "1.5", "2.0"}) {
    INFO(text);
    CHECK(std::count(texts.begin(), texts.end(), text) == 1);
  }
  CHECK_THAT(svg, ContainsSubstring("prefers-color-scheme:dark"));
  CHECK(svg.find("http", svg.find("xmlns") + 20) == svg.npos);  // it does not need other files
}

TEST_CASE("a series with the same name as its axis has no legend") {
  LineChart chart = chart_of({2, 1});
  chart.panels[0].series[0].name = "loss";
  const auto svg = chart.svg();
  CHECK(svg.find(">loss</text>") == svg.rfind(">loss</text>"));
}

TEST_CASE(
    "a line with few points has a marker at each point, and a line with many points has no "
    "markers") {
  CHECK(markers(chart_of({3, 2, 1}).svg()) == 3);
  const auto many = chart_of(std::vector<double>(1000, 0.5)).svg();
  CHECK(markers(many) == 0);
  CHECK(lines(many) == 1);
}

TEST_CASE("a single epoch is drawn as a marker") {
  const auto svg = chart_of({0.5}).svg();
  CHECK(svg_problem(svg) == "");
  CHECK(lines(svg) == 0);
  CHECK(markers(svg) == 1);
}

TEST_CASE("non-finite values leave a gap in the line, and an isolated point is drawn as a marker") {
  const auto svg = chart_of({3, 2, no_number, 2, infinity, -infinity, 1e305, 1, 1}).svg();
  CHECK(svg_problem(svg) == "");
  CHECK(lines(svg) == 2);
  CHECK(markers(svg) == 5);
  std::vector<double> many(1000, 0.5);
  for (const size_t i : {498, 499, 500, 502, 503, 504}) many[i] = no_number;  // 502 is isolated
  const auto of_many = chart_of(many).svg();
  CHECK(lines(of_many) == 2);
  CHECK(markers(of_many) == 1);
}

TEST_CASE("a chart without finite values displays a message instead of a plot") {
  for (const auto& values : {std::vector<double>(), {no_number}, {no_number, infinity}}) {
    const auto svg = chart_of(values).svg();
    CHECK(svg_problem(svg) == "");
    CHECK_THAT(svg, ContainsSubstring(">no finite value</text>"));
    CHECK_THAT(svg, !ContainsSubstring("nan") && !ContainsSubstring("inf\""));
  }
}

TEST_CASE("a chart file stays small regardless of the number of points") {
  std::vector<double> noise;
  for (double i = 0; i < 100'000; ++i) noise.push_back(std::sin(i * i));
  CHECK(chart_of({noise.begin(), noise.begin() + 1000}).svg().size() < 12'000);
  CHECK(chart_of(noise).svg().size() < 30'000);
  for (size_t i = 0; i < noise.size(); i += 2) noise[i] = no_number;
  CHECK(chart_of(noise).svg().size() < 30'000);
}

TEST_CASE("a line with many points still shows the highest and lowest values") {
  std::vector<double> values(100'000, 1);
  values[50'001] = 3;
  values[70'001] = -1;
  const auto svg = chart_of(values).svg();
  CHECK(svg_problem(svg) == "");
  const auto line = lines_of(svg, "line s0 d0").at(1);
  const double usual = line.front().y;
  const auto is_higher = [&](const auto& point) { return point.y < usual - 1; };
  const auto is_lower = [&](const auto& point) { return point.y > usual + 1; };
  CHECK(std::count_if(line.begin(), line.end(), is_higher) == 1);
  CHECK(std::count_if(line.begin(), line.end(), is_lower) == 1);
}

TEST_CASE("a chart's first twelve series all look different") {
  ChartPanel panel{.y_label = "loss"};
  for (int i = 0; i < 12; ++i) panel.series.push_back(by_epoch(std::to_string(i), {1.0 * i, 2}));
  const auto svg = LineChart{.panels = {panel}}.svg();
  CHECK(svg_problem(svg) == "");
  int kinds = 0;
  for (int color = 0; color < 6; ++color) {
    for (int dash = 0; dash < 4; ++dash) {
      const auto found =
          lines_of(svg, "line s" + std::to_string(color) + " d" + std::to_string(dash));
      if (found.empty()) continue;
      CHECK(found.size() == 2);  // in the legend and in the panel
      ++kinds;
    }
  }
  CHECK(kinds == 12);
}

TEST_CASE("every panel has a separate y axis, and only the last panel labels the epochs") {
  LineChart chart = chart_of({2, 1, 0.5});
  chart.panels.push_back(
      {.y_label = "learning rate", .series = {by_epoch("", {1e-5, 4e-5, 2e-5})}});
  const auto svg = chart.svg();
  CHECK(svg_problem(svg) == "");
  CHECK_THAT(svg, ContainsSubstring(">2e-5</text>") && ContainsSubstring(">1.5</text>"));
  CHECK(svg.find(">3</text>") == svg.rfind(">3</text>"));
}

TEST_CASE("LineChart rejects a chart without panels and a series with too few y values") {
  CHECK_THAT(error_of([] { LineChart().svg(); }),
             ContainsSubstring("sconce::LineChart: expected at least one panel, got none"));
  LineChart chart = chart_of({1, 2});
  chart.panels[0].series[0].x.push_back(3);
  CHECK_THAT(
      error_of([&] { chart.svg(); }),
      ContainsSubstring("expected 3 y values (one for each x value) in the series 'train', got 2"));
}

TEST_CASE("saving a chart writes the whole file and leaves no other files") {
  const sconce::test::TempDir folder;
  const auto chart = chart_of({2, 1});
  chart.save(folder.path() / "x.svg");
  chart.save(folder.path() / "x.svg");
  CHECK(sconce::test::contents(folder.path() / "x.svg") == chart.svg());
  CHECK(sconce::test::names_in(folder.path()) == std::vector<std::string>{"x.svg"});
  CHECK_THAT(error_of([&] { chart.save(folder.path()); }),
             ContainsSubstring("sconce::LineChart::save: " + folder.path().string()));
}
