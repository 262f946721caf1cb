#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// Building blocks for charts, as SVG in XML 1.0. The output does not depend on the locale.
namespace sconce::svg {

constexpr double chart_width = 600;  ///< in pixels

/// Returns the text, escaped for XML. Control characters and invalid UTF-8 bytes become U+FFFD.
/// Tabs and line breaks become spaces.
std::string escape(std::string_view text);

/// Converts tenths of a pixel to pixels in the shortest form, such as "12.5" or ".5".
std::string tenths(int64_t value);
/// Formats a number of pixels, rounded to one decimal place.
std::string number(double pixels);

/// Returns an upper bound for the width of a string, in pixels, at font size 12. The viewer chooses
/// the font.
double text_width(std::string_view text);

/// Returns the largest `text_width` in a list, or 0 if the list is empty.
double widest(const std::vector<std::string>& texts);

/// The options of `text`.
struct TextOptions {
  double room = std::numeric_limits<double>::infinity();  ///< pixels; wider text is truncated
  double size = 12;                                       ///< font size in pixels
  std::string anchor = {};                                ///< part at the position: middle or end
  std::string style_class = {};
  std::string style = {};  ///< CSS
  bool is_turned = false;  ///< whether the text runs upward
};

/// Returns a <text> element at the position, in pixels. If the text is truncated, its tooltip
/// contains the whole text.
std::string text(double x, double y, std::string_view text, const TextOptions& options = {});

/// Returns a <path> element.
std::string path(const std::string& style_class, const std::string& data);

/// Returns <path> data for a rectangle, in pixels.
std::string rectangle(double x, double y, double width, double height);

/// The contents of an SVG file.
struct Document {
  double height = 0;       ///< in pixels
  std::string title = {};  ///< drawn in the top 40 pixels
  std::string style = {};  ///< CSS, in addition to the style for texts, frames, and the background
  std::string body = {};
};

/// Returns the complete SVG file.
std::string document(const Document& document);

}  // namespace sconce::svg
