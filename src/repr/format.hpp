#pragma once

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

}  // namespace sconce
