#pragma once

#include <cstdint>
#include <string_view>

namespace sconce::io {

/// Returns whether the text is valid UTF-8, without overlong forms, surrogates, or values above
/// U+10FFFF.
inline bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = first < 0x80   ? 1
                          : first < 0xC0 ? 0
                          : first < 0xE0 ? 2
                          : first < 0xF0 ? 3
                          : first < 0xF8 ? 4
                                         : 0;
    if (length == 0 || length > text.size() - i) return false;
    uint32_t code = length == 1 ? first : first & (0x7FU >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0U) != 0x80) return false;
      code = code << 6 | (next & 0x3FU);
    }
    constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};  // indexed by length
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += length;
  }
  return true;
}

}  // namespace sconce::io
