#pragma once

#include <ATen/core/Tensor.h>
#include <zlib.h>

#include <cstdint>
#include <string>

namespace sconce::test {

/// Returns a number in the encoding that PNG and IDX files use: four bytes in big-endian order.
inline std::string big_endian(int64_t value) {
  std::string bytes(4, '\0');
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(value >> (24 - 8 * i));
  return bytes;
}

/// Returns one chunk of a PNG file.
inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string both = type + data;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(both.data()), static_cast<uInt>(both.size()));
  return big_endian(static_cast<int64_t>(data.size())) + both + big_endian(crc);
}

/// Returns the beginning of an 8-bit grayscale or RGB PNG file, up to the pixels.
inline std::string png_header(int64_t channels, int64_t height, int64_t width) {
  const std::string color(1, channels == 1 ? '\0' : '\2');
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", big_endian(width) + big_endian(height) + '\x8' +
                                                     color + std::string(3, '\0'));
}

/// Returns the PNG file for a grayscale or RGB uint8 image of shape (C, H, W).
inline std::string png_of(const at::Tensor& picture) {
  const at::Tensor pixels = picture.permute({1, 2, 0}).contiguous();
  const auto* bytes = static_cast<const char*>(pixels.const_data_ptr());
  const auto line = static_cast<size_t>(picture.size(0) * picture.size(2));
  std::string raw;
  for (int64_t y = 0; y < picture.size(1); ++y) raw += '\0' + std::string(bytes + y * line, line);
  std::string packed(compressBound(raw.size()), '\0');
  auto size = static_cast<uLongf>(packed.size());
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  packed.resize(size);
  return png_header(picture.size(0), picture.size(1), picture.size(2)) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

}  // namespace sconce::test
