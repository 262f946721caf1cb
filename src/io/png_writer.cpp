#include "io/png_writer.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <zlib.h>

#include <string_view>

namespace sconce::io {

namespace {

const Bytef* bytes_of(std::string_view text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

std::string big_endian(uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// `content` starts with the chunk's four-letter type.
std::string chunk(const std::string& content) {
  const uLong checksum = crc32_z(0, bytes_of(content), content.size());
  return big_endian(content.size() - 4) + content + big_endian(checksum);
}

// Each row starts with a filter-type byte. Filter type 2 stores the difference between each byte
// and the byte above it, modulo 256, which improves compression.
at::Tensor filtered(const at::Tensor& pixels) {
  const at::Tensor rows = pixels.flatten(1);
  const at::Tensor result = at::full({rows.size(0), rows.size(1) + 1}, 2, rows.options());
  const at::Tensor stored = result.slice(1, 1);
  stored.copy_(rows);
  stored.slice(0, 1).sub_(rows.slice(0, 0, rows.size(0) - 1));
  return result;
}

std::string compressed(std::string_view data) {
  auto size = compressBound(static_cast<uLong>(data.size()));
  std::string result(size, '\0');
  const int error = compress(reinterpret_cast<Bytef*>(result.data()), &size, bytes_of(data),
                             static_cast<uLong>(data.size()));
  TORCH_CHECK(error == Z_OK, "sconce: cannot compress a PNG image: ", zError(error));
  result.resize(size);
  return result;
}

}  // namespace

std::string png_file(const at::Tensor& pixels) {
  constexpr std::string_view color_types("\0\4\2\6", 4);  // indexed by the number of channels
  const auto size = [&](int64_t dim) {
    return big_endian(static_cast<uint64_t>(pixels.size(dim)));
  };
  const char color_type = color_types[static_cast<size_t>(pixels.size(2)) - 1];
  const std::string header = size(1) + size(0) + '\x8' + color_type + std::string(3, '\0');
  const at::Tensor rows = filtered(pixels);
  const std::string_view data(static_cast<const char*>(rows.const_data_ptr()),
                              static_cast<size_t>(rows.numel()));
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR" + header) + chunk("IDAT" + compressed(data)) +
         chunk("IEND");
}

}  // namespace sconce::io
