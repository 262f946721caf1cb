#include "picture.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "sconce/data/transforms.hpp"

namespace train {

namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File open(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error && status.type() != fs::file_type::not_found) throw PictureError(error.message());
  if (!fs::is_regular_file(status)) {
    throw PictureError(fs::is_directory(status) ? "expected a picture, got a folder"
                       : fs::exists(status)     ? "expected a regular file"
                                                : "no such file");
  }
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw PictureError(std::strerror(errno));
  return file;
}

std::unique_ptr<PictureDecoder> decoder_of(std::FILE* file) {
  using namespace std::string_view_literals;
  std::array<char, 8> bytes = {};
  const std::string_view start(bytes.data(), std::fread(bytes.data(), 1, bytes.size(), file));
  if (std::fseek(file, 0, SEEK_SET) != 0) throw PictureError(std::strerror(errno));
  if (start == "\x89PNG\r\n\x1a\n"sv) return make_png_decoder(file);
  if (start.starts_with("\xff\xd8\xff"sv)) return make_jpeg_decoder(file);
  throw PictureError("expected a PNG or JPEG picture, got something else");
}

PictureSize read_header(PictureDecoder& decoder, int64_t max_pixels) {
  const PictureSize size = decoder.read_header();
  if (size.width > max_pixels / size.height) {
    throw PictureError(std::to_string(size.width) + " x " + std::to_string(size.height) +
                       " pixels are more than the " + std::to_string(max_pixels) +
                       " that are read");
  }
  return size;
}

// Returns `read()`, and adds the file's name to its errors.
template <class Read>
auto naming(const fs::path& file, const Read& read) {
  try {
    return read();
  } catch (const PictureError& error) {
    throw PictureError(file.string() + ": " + error.what());
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file.string() + ": " + error.what());
  }
}

}  // namespace

PictureSize read_picture_header(const fs::path& path, int64_t max_pixels) {
  return naming(path, [&] {
    const File file = open(path);
    return read_header(*decoder_of(file.get()), max_pixels);
  });
}

at::Tensor read_picture(const fs::path& path, int64_t max_pixels) {
  return naming(path, [&] {
    const File file = open(path);
    const auto decoder = decoder_of(file.get());
    const PictureSize size = read_header(*decoder, max_pixels);
    const auto pixels = at::empty({size.height, size.width, 3}, at::kByte);
    decoder->read_pixels(pixels.mutable_data_ptr<uint8_t>());
    return pixels.permute({2, 0, 1});
  });
}

at::Tensor rgb_to_grey(const at::Tensor& picture) {
  const at::Tensor rgb = picture.to(at::kInt);
  const at::Tensor sum = rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471;
  return (sum + 0x8000).__rshift__(16).to(at::kByte).unsqueeze(0);
}

at::Tensor resize_picture(const at::Tensor& picture, at::IntArrayRef size) {
  const sconce::data::Resize resize({size[0], size[1]});
  return resize(picture.unsqueeze(0)).squeeze(0).contiguous();
}

}  // namespace train
