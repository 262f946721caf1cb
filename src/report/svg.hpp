#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

/// What the charts are written with: parts of an SVG, in XML 1.0, the same under every locale.
namespace sconce::svg {

constexpr double chart_width = 600;  ///< of a chart, in pixels

/// Returns the text as XML takes it: escaped, with U+FFFD for control characters and for bytes that
/// are no UTF-8, and blanks for the ends of lines.
std::string escape(std::string_view text);

/// Returns tenths of a pixel in pixels, such as "12.5", as short as can be.
std::string tenths(int64_t value);
/// Returns pixels, rounded to tenths.
std::string number(double pixels);

/// Returns the width of a text of 12 pixels in pixels: an estimate from above, since the font is
/// the viewer's.
double text_width(std::string_view text);

/// How a text is set.
struct TextOptions {
  double room = std::numeric_limits<double>::infinity();  ///< pixels; cut where it is wider
  double size = 12;                                       ///< of the font, in pixels
  std::string attributes = {};                            ///< further ones, as XML has them
};

/// Returns a <text> at that place, in pixels. Of one that is cut the whole is its tooltip.
std::string text(double x, double y, std::string_view text, const TextOptions& options = {});

/// A chart without its frame.
struct Document {
  double height = 0;       ///< pixels
  std::string title = {};  ///< written at the top, 40 pixels high
  std::string style = {};  ///< CSS, after that of the texts and the background
  std::string body = {};
};

/// Returns the whole file.
std::string document(const Document& document);

}  // namespace sconce::svg
