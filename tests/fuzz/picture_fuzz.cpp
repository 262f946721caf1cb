// Fuzzes the image decoders. tests/vision/image_test.cpp checks the decoded pixels.
#include <cstdint>
#include <cstdio>
#include <memory>

#include "fuzz/target.hpp"
#include "vision/image_decoder.hpp"

using sconce::test::expect;
using sconce::vision::ImageReadMode;

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

SCONCE_FUZZ_TARGET(picture)(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::unique_ptr<std::FILE, CloseFile> file(
      fmemopen(const_cast<uint8_t*>(data), size, "rb"));
  const auto mode = static_cast<ImageReadMode>(data[size / 2] % 5);
  try {
    const auto image = sconce::vision::read_pixels(file.get(), mode, {.max_pixels = 1 << 20});
    expect(mode == ImageReadMode::unchanged || image.size(0) == static_cast<int64_t>(mode),
           "a picture has other channels than its mode");
  } catch (const sconce::vision::ImageError&) {
  }
  return 0;
}
