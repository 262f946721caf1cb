#pragma once

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <vector>

#include "support/xml.hpp"

namespace sconce::test {

/// A point in a drawing, in pixels.
struct SvgPoint {
  double x = 0;
  double y = 0;
};

/// Returns the visible text elements of a chart in document order.
inline std::vector<std::string> texts_of(const std::string& svg) {
  static const std::regex text("<text[^>]*>(?:<title>[^<]*</title>)?([^<]*)</text>");
  std::vector<std::string> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), text), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

/// Returns the lines in the data of a path, each as the list of points that it connects. M and L
/// set a point, and l, h, v, and a continue from the previous one. Anything else, such as nan,
/// becomes a NaN point.
inline std::vector<std::vector<SvgPoint>> lines_of_path(const std::string& data) {
  std::vector<std::vector<SvgPoint>> lines;
  char command = ' ';
  std::vector<double> numbers;
  for (const char* at = data.c_str(); *at != '\0';) {
    if (std::isalpha(static_cast<unsigned char>(*at)) != 0) {
      command = *at++;
      if (command == 'M') lines.emplace_back();
      if (std::strchr("MLlhvaz", command) == nullptr) lines.push_back({{std::nan(""), 0}});
      continue;
    }
    char* end = nullptr;
    numbers.push_back(std::strtod(at, &end));
    at = end;
    const size_t wanted = command == 'a' ? 7 : command == 'h' || command == 'v' ? 1 : 2;
    if (numbers.size() < wanted) continue;
    SvgPoint to = lines.back().empty() || command == 'L' ? SvgPoint() : lines.back().back();
    if (command != 'v') to.x += numbers[wanted == 7 ? 5 : 0];
    if (command != 'h') to.y += numbers.back();
    lines.back().push_back(to);
    numbers.clear();
  }
  return lines;
}

/// Returns the value of an attribute in a tag, or an empty string if the attribute is missing.
inline std::string attribute_of(const std::string& tag, const std::string& name) {
  const auto begin = tag.find(' ' + name + "=\"");
  if (begin == tag.npos) return "";
  const auto from = begin + name.size() + 3;
  return tag.substr(from, tag.find('"', from) - from);
}

/// Returns the lines of all paths in one class, or in all classes, in document order.
inline std::vector<std::vector<SvgPoint>> lines_of(const std::string& svg,
                                                   const std::string& style_class = "") {
  std::vector<std::vector<SvgPoint>> found;
  for (auto at = svg.find("<path "); at != svg.npos; at = svg.find("<path ", at + 1)) {
    const auto tag = svg.substr(at, svg.find('>', at) - at);
    if (!style_class.empty() && attribute_of(tag, "class") != style_class) continue;
    const auto lines = lines_of_path(attribute_of(tag, "d"));
    found.insert(found.end(), lines.begin(), lines.end());
  }
  return found;
}

/// If a chart is not well-formed or draws outside its image, returns the reason. Otherwise, returns
/// an empty string.
inline std::string svg_problem(const std::string& svg) {
  if (const auto problem = xml_problem(svg); !problem.empty()) return problem;
  const auto begin = svg.find("<svg ");
  const auto tag = svg.substr(begin, svg.find('>', begin) - begin);
  const double width = std::stod(attribute_of(tag, "width"));
  const double height = std::stod(attribute_of(tag, "height"));
  for (const auto& line : lines_of(svg)) {
    for (const auto& [x, y] : line) {
      if (!(x >= 0 && x <= width && y >= 0 && y <= height)) {
        return "a point at " + std::to_string(x) + ", " + std::to_string(y);
      }
    }
  }
  return "";
}

}  // namespace sconce::test
