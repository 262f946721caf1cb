#include "vision/image_decoder.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vision/jpeg.hpp"
#include "vision/png.hpp"

namespace sconce::vision {

namespace {

using namespace std::string_view_literals;

std::string_view kind_of(std::string_view start) {
  if (start.empty()) return "an empty file";
  if (start.starts_with("GIF8")) return "a GIF";
  if (start.starts_with("RIFF") && start.ends_with("WEBP")) return "a WebP";
  if (start.starts_with("BM")) return "a BMP";
  if (start.starts_with("II*\0"sv) || start.starts_with("MM\0*"sv)) return "a TIFF";
  return "something else";
}

std::unique_ptr<ImageDecoder> decoder_of(std::FILE* file, const ImageLimits& limits) {
  std::array<char, 12> bytes = {};
  const std::string_view start(bytes.data(), std::fread(bytes.data(), 1, bytes.size(), file));
  if (std::ferror(file) || std::fseek(file, 0, SEEK_SET) != 0) {
    throw ImageError(std::strerror(errno));
  }
  if (start.starts_with("\x89PNG\r\n\x1a\n"sv)) return make_png_decoder(file);
  if (start.starts_with("\xff\xd8\xff"sv)) return make_jpeg_decoder(file, limits.max_scans);
  throw ImageError("expected a PNG or JPEG image, got " + std::string(kind_of(start)));
}

ImageHeader checked_header(ImageDecoder& decoder, const ImageLimits& limits) {
  const ImageHeader header = decoder.read_header();
  if (header.width > limits.max_pixels / header.height) {
    throw ImageError("expected at most " + std::to_string(limits.max_pixels) +
                     " pixels (ImageLimits::max_pixels), got " + std::to_string(header.width) +
                     " x " + std::to_string(header.height));
  }
  return header;
}

// Converts (H, W, 3 or more) to (1, H, W). Tensor operations would need 20 bytes per pixel.
at::Tensor rgb_to_gray(const at::Tensor& pixels) {
  const at::Tensor gray = at::empty({1, pixels.size(0), pixels.size(1)}, at::kByte);
  const auto* rgb = pixels.const_data_ptr<uint8_t>();
  auto* to = gray.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < gray.numel(); ++i, rgb += pixels.size(2)) {
    to[i] = static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
  }
  return gray;
}

}  // namespace

ImageHeader read_header(std::FILE* file, const ImageLimits& limits) {
  return checked_header(*decoder_of(file, limits), limits);
}

at::Tensor read_pixels(std::FILE* file, ImageReadMode mode, const ImageLimits& limits) {
  auto decoder = decoder_of(file, limits);
  const ImageHeader header = checked_header(*decoder, limits);
  const int64_t wanted =
      mode == ImageReadMode::unchanged ? header.channels : static_cast<int64_t>(mode);
  const bool wants_alpha = wanted % 2 == 0;
  const bool has_alpha = wants_alpha && header.channels % 2 == 0;
  const int64_t colors = header.channels >= 3 || wanted >= 3 ? 3 : 1;
  const int64_t channels = colors + (has_alpha ? 1 : 0);
  const at::Tensor pixels = at::empty({header.height, header.width, channels}, at::kByte);
  decoder->read_pixels(pixels.mutable_data_ptr<uint8_t>(), channels);
  decoder.reset();  // frees up to 16 bytes per pixel
  const at::Tensor image = pixels.permute({2, 0, 1});
  if (channels == wanted) return image;
  std::vector<at::Tensor> parts = {wanted < 3 && colors == 3 ? rgb_to_gray(pixels)
                                                             : image.slice(0, 0, colors)};
  if (has_alpha) parts.push_back(image.slice(0, colors));
  if (wants_alpha && !has_alpha) {
    const at::Tensor opaque = at::scalar_tensor(255, at::kByte);
    parts.push_back(opaque.expand({1, header.height, header.width}));
  }
  return at::cat(parts);
}

}  // namespace sconce::vision
