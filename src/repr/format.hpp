#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

namespace sconce {

/// Formats values with a `printf` pattern. Some of the supported compilers lack std::format. For
/// fractions use the other overload: the point of `printf` is the locale's.
template <class... A>
std::string format(const char* pattern, A... values) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, pattern, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, values...);
  return text;
}

/// Formats a number as Python's format(value, '.4f') and the like: no locale, exact digits, no sign
/// for nan.
inline std::string format(double value, std::chars_format style, int digits) {
  if (std::isnan(value)) return "nan";
  std::array<char, 400> text;  // 309 digits before the point at most
  const auto end = std::to_chars(text.begin(), text.end(), value, style, digits).ptr;
  return {text.begin(), end};
}

/// Returns the shortest text that reads back as the same number, such as "2", "0.1" and "1e-05".
/// The sign of a nan is dropped.
inline std::string shortest_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace sconce
