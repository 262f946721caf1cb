#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// Parts of the charts as SVG in XML 1.0. They do not depend on the locale.
namespace sconce::svg {

constexpr double chart_width = 600;  ///< in pixels

/// Returns the text escaped for XML. Control characters and bytes that are not UTF-8 become U+FFFD;
/// tabs and line breaks become blanks.
std::string escape(std::string_view text);

/// Returns a number of tenths of a pixel as pixels in its shortest form, such as "12.5" or ".5".
std::string tenths(int64_t value);
/// Returns a number of pixels, rounded to tenths.
std::string number(double pixels);

/// Returns an upper estimate of the width of a text in pixels at font size 12. The viewer chooses
/// the font.
double text_width(std::string_view text);

/// Returns the largest `text_width`, or 0 if there are no texts.
double widest(const std::vector<std::string>& texts);

/// Options of `text`.
struct TextOptions {
  double room = std::numeric_limits<double>::infinity();  ///< pixels; a wider text is cut
  double size = 12;                                       ///< font size in pixels
  std::string anchor = {};                                ///< part at the position: middle, end
  std::string style_class = {};
  std::string style = {};  ///< CSS
  bool is_turned = false;  ///< whether the text runs upwards
};

/// Returns a <text> element at the position, in pixels. If the text is cut, its tooltip has the
/// whole text.
std::string text(double x, double y, std::string_view text, const TextOptions& options = {});

/// Returns a <path> element.
std::string path(const std::string& style_class, const std::string& data);

/// Returns the data of a <path>: a rectangle, in pixels.
std::string rectangle(double x, double y, double width, double height);

/// Content of an SVG file.
struct Document {
  double height = 0;       ///< in pixels
  std::string title = {};  ///< drawn in the top 40 pixels
  std::string style = {};  ///< CSS, in addition to that of texts, frames and the background
  std::string body = {};
};

/// Returns the whole SVG file.
std::string document(const Document& document);

}  // namespace sconce::svg
