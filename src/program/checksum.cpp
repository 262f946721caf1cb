#include "program/checksum.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace sconce::program::detail {

namespace {

uLong add_to_crc32(uLong checksum, const void* data, size_t size) {
  return crc32_z(checksum, static_cast<const Bytef*>(data), size);
}

std::string digits_of(uLong checksum) {
  std::array<char, 9> digits = {};
  std::snprintf(digits.data(), digits.size(), "%08lx", checksum);
  return digits.data();
}

}  // namespace

std::string crc32_of(const void* data, size_t size) {
  return digits_of(add_to_crc32(0, data, size));
}

std::string crc32_of(const io::InputFile& file) {
  std::vector<char> block(1 << 20);
  uLong checksum = 0;
  for (uint64_t at = 0; at < file.size(); at += block.size()) {
    const auto size = std::min<uint64_t>(block.size(), file.size() - at);
    file.read(at, block.data(), size);
    checksum = add_to_crc32(checksum, block.data(), size);
  }
  return digits_of(checksum);
}

}  // namespace sconce::program::detail
