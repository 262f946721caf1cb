#pragma once

#include <string>

namespace sconce::test {

/// Returns a string of at least `size` bytes that repeats another string.
inline std::string repeated(const std::string& text, size_t size) {
  std::string all;
  while (all.size() < size) all += text;
  return all;
}

}  // namespace sconce::test
