#include "vision/image_decoder.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

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

std::unique_ptr<ImageDecoder> decoder_of(std::FILE* file) {
  std::array<char, 12> bytes = {};
  const std::string_view start(bytes.data(), std::fread(bytes.data(), 1, bytes.size(), file));
  if (std::ferror(file) || std::fseek(file, 0, SEEK_SET) != 0) {
    throw ImageError(std::strerror(errno));
  }
  if (start.starts_with("\x89PNG\r\n\x1a\n"sv)) return make_png_decoder(file);
  if (start.starts_with("\xff\xd8\xff"sv)) return make_jpeg_decoder(file);
  throw ImageError("expected a PNG or JPEG picture, got " + std::string(kind_of(start)));
}

ImageHeader checked_header(ImageDecoder& decoder, int64_t max_pixels) {
  const ImageHeader header = decoder.read_header();
  if (header.width > max_pixels / header.height) {
    throw ImageError(std::to_string(header.width) + " x " + std::to_string(header.height) +
                     " pixels are more than the " + std::to_string(max_pixels) + " that are read");
  }
  return header;
}

at::Tensor rgb_to_gray(const at::Tensor& image) {
  const at::Tensor rgb = image.to(at::kInt);
  const at::Tensor sum = rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471;
  return (sum + 0x8000).__rshift__(16).to(at::kByte).unsqueeze(0);
}

}  // namespace

ImageHeader read_header(std::FILE* file, int64_t max_pixels) {
  return checked_header(*decoder_of(file), max_pixels);
}

at::Tensor read_pixels(std::FILE* file, ImageReadMode mode, int64_t max_pixels) {
  const auto decoder = decoder_of(file);
  const ImageHeader header = checked_header(*decoder, max_pixels);
  const int64_t wanted =
      mode == ImageReadMode::unchanged ? header.channels : static_cast<int64_t>(mode);
  const bool wants_alpha = wanted % 2 == 0;
  const bool has_alpha = wants_alpha && header.channels % 2 == 0;
  const int64_t colors = header.channels >= 3 || wanted >= 3 ? 3 : 1;
  const int64_t channels = colors + (has_alpha ? 1 : 0);
  const at::Tensor pixels = at::empty({header.height, header.width, channels}, at::kByte);
  decoder->read_pixels(pixels.mutable_data_ptr<uint8_t>(), channels);
  const at::Tensor image = pixels.permute({2, 0, 1});
  if (channels == wanted) return image;
  std::vector<at::Tensor> parts = {wanted < 3 && colors == 3 ? rgb_to_gray(image)
                                                             : image.slice(0, 0, colors)};
  if (has_alpha) parts.push_back(image.slice(0, colors));
  if (wants_alpha && !has_alpha) {
    parts.push_back(at::full({1, header.height, header.width}, 255, at::kByte));
  }
  return at::cat(parts);
}

}  // namespace sconce::vision
