#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

namespace sconce {

/// Formats values with a `printf` pattern, because some supported compilers do not provide
/// std::format. For numbers with fractions, use the other overload, because `printf` uses the
/// decimal point of the locale.
template <class... A>
std::string format(const char* pattern, A... values) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, pattern, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, values...);
  return text;
}

/// Formats a number like Python's format(value, '.4f') and similar calls. The result has exact
/// digits, does not depend on the locale, and omits the sign of nan.
inline std::string format(double value, std::chars_format style, int digits) {
  if (std::isnan(value)) return "nan";
  std::array<char, 400> text;  // at most 309 digits before the point
  const auto end = std::to_chars(text.begin(), text.end(), value, style, digits).ptr;
  return {text.begin(), end};
}

/// Returns the shortest string that parses as the same number, such as "2", "0.1", or "1e-05".
/// Omits the sign of nan.
inline std::string shortest_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace sconce
