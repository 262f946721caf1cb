#include "report/svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "io/utf8.hpp"

namespace sconce::svg {

namespace {

constexpr auto no_character = "\xEF\xBF\xBD";  // U+FFFD

// Returns the first character of the text, and sets `length` to its size in bytes.
std::string first_character(std::string_view text, size_t& length) {
  length = 1;
  while (length < 4 && !io::is_utf8(text.substr(0, length))) ++length;
  const std::string character(text.substr(0, length));
  if (!io::is_utf8(character)) {
    length = 1;
    return no_character;
  }
  if (character == "\t" || character == "\n" || character == "\r") return " ";
  const bool is_control = length == 1 && (character[0] < ' ' || character[0] == '\x7F');
  const bool is_none = character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
  return is_control || is_none ? no_character : character;
}

std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> all;
  for (size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    all.push_back(first_character(text, length));
  }
  return all;
}

std::string escape_character(const std::string& character) {
  if (character == "&") return "&amp;";
  if (character == "<") return "&lt;";
  if (character == ">") return "&gt;";
  if (character == "\"") return "&quot;";
  return character;
}

// The widths below are character widths in the widest of the common fonts. Chinese characters and
// emoji are at least as wide as they are tall.
double character_width(const std::string& character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first >= 0xF0) return 17;
  if (first >= 0x80) return first >= 0xE1 ? 12.5 : 9.5;
  if (std::string_view(" !'(),./:;I[]fijlrt|").find(character[0]) != std::string_view::npos) {
    return 5;
  }
  if (std::string_view("%@MWmw").find(character[0]) != std::string_view::npos) return 12;
  return first >= 'A' && first <= 'Z' ? 9.5 : 7.7;
}

// Returns the part of the text that fits, followed by an ellipsis.
std::string cut(std::string_view whole, double room) {
  std::string fitting;
  double used = character_width("\xE2\x80\xA6");
  for (const auto& character : characters(whole)) {
    used += character_width(character);
    if (used > room) break;
    fitting += character;
  }
  return fitting + "\xE2\x80\xA6";
}

constexpr auto common_style =
    "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2328}"
    ".background{fill:#fff}.muted{fill:#59636e}.frame{fill:none;stroke:#8c959f}"
    "@media(prefers-color-scheme:dark){"
    "text{fill:#e6edf3}.background{fill:#0d1117}.muted{fill:#9198a1}.frame{stroke:#6e7681}}";

std::string attribute(const char* name, const std::string& value) {
  return value.empty() ? "" : ' ' + std::string(name) + "=\"" + value + '"';
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  for (const auto& character : characters(text)) escaped += escape_character(character);
  return escaped;
}

std::string tenths(int64_t value) {
  const int64_t whole = std::abs(value) / 10, rest = std::abs(value) % 10;
  std::string text = value < 0 ? "-" : "";
  if (whole > 0 || rest == 0) text += std::to_string(whole);
  return rest > 0 ? text + '.' + std::to_string(rest) : text;
}

std::string number(double pixels) {
  return tenths(std::llround(pixels * 10));
}

double text_width(std::string_view text) {
  double width = 0;
  for (const auto& character : characters(text)) width += character_width(character);
  return width;
}

double widest(const std::vector<std::string>& texts) {
  double width = 0;
  for (const auto& text : texts) width = std::max(width, text_width(text));
  return width;
}

std::string text(double x, double y, std::string_view text, const TextOptions& options) {
  const double room = options.room * 12 / options.size;
  const bool fits = text_width(text) <= room;
  const std::string place =
      options.is_turned
          ? attribute("transform", "translate(" + number(x) + ' ' + number(y) + ")rotate(-90)")
          : attribute("x", number(x)) + attribute("y", number(y));
  const std::string head = "<text" + place + attribute("text-anchor", options.anchor) +
                           attribute("class", options.style_class) +
                           attribute("style", options.style) + '>';
  if (fits) return head + escape(text) + "</text>\n";
  return head + "<title>" + escape(text) + "</title>" + escape(cut(text, room)) + "</text>\n";
}

std::string path(const std::string& style_class, const std::string& data) {
  return "<path" + attribute("class", style_class) + attribute("d", data) + "/>\n";
}

std::string rectangle(double x, double y, double width, double height) {
  return 'M' + number(x) + ' ' + number(y) + 'h' + number(width) + 'v' + number(height) + "h-" +
         number(width) + 'z';
}

std::string document(const Document& document) {
  const std::string height = number(document.height), wide = number(chart_width);
  const std::string name = escape(document.title);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
         wide + "\" height=\"" + height + "\" viewBox=\"0 0 " + wide + ' ' + height +
         "\" role=\"img\" aria-label=\"" + name + "\">\n<title>" + name + "</title>\n<style>" +
         common_style + document.style + "</style>\n<rect class=\"background\" width=\"" + wide +
         "\" height=\"" + height + "\"/>\n" +
         // Uses a larger size than the font size, because bold letters are wider.
         text(16, 26, document.title,
              {.room = chart_width - 32, .size = 18, .style = "font-size:16px;font-weight:600"}) +
         document.body + "</svg>\n";
}

}  // namespace sconce::svg
