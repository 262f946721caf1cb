// Fuzzes the decoders of sconce-train. Their pixels are not checked here, but in
// tests/apps/picture_test.cpp.
#include "train/picture_decoder.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "fuzz/target.hpp"

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

void read(std::unique_ptr<train::PictureDecoder> (*make)(std::FILE*), const uint8_t* data,
          size_t size) {
  const std::unique_ptr<std::FILE, CloseFile> file(
      fmemopen(const_cast<uint8_t*>(data), size, "rb"));
  try {
    const auto decoder = make(file.get());
    const auto [height, width] = decoder->read_header();
    if (height > (1 << 20) / width) return;
    std::vector<uint8_t> pixels(static_cast<size_t>(3 * height * width));
    decoder->read_pixels(pixels.data());
  } catch (const train::PictureError&) {
  }
}

}  // namespace

SCONCE_FUZZ_TARGET(picture)(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  read(data[0] == 0x89 ? train::make_png_decoder : train::make_jpeg_decoder, data, size);
  return 0;
}
