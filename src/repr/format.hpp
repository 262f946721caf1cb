#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

namespace sconce {

/// Returns the text that `printf` makes of the pattern; std::format is missing from some of the
/// supported compilers.
template <class... A>
std::string format(const char* pattern, A... values) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, pattern, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, values...);
  return text;
}

/// Returns the shortest text that reads as the same number, such as "2", "0.1" and "1e-05". A nan
/// may have a sign, which says nothing.
inline std::string shortest_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace sconce
