#include "sconce/vision/image.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "io/input_file.hpp"
#include "sconce/io/atomic_file.hpp"
#include "vision/image_decoder.hpp"
#include "vision/png.hpp"

namespace sconce::vision {

namespace {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

File open(const fs::path& path, const char* caller) {
  const int fd = io::InputFile(path, caller).duplicate();
  File file(::fdopen(fd, "rb"));
  if (!file) {
    const int error = errno;
    ::close(fd);
    throw ImageError(std::strerror(error));
  }
  return file;
}

// Returns the result of `work()`. Converts errors in `work` to LibTorch errors prefixed with
// `caller`, which contains the function name and the file path.
template <class Work>
auto with_name(const std::string& caller, const Work& work) {
  try {
    return work();
  } catch (const ImageError& error) {
    TORCH_CHECK(false, caller, ": ", error.what());
  } catch (const NoImageLibrary& error) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, caller, ": ", error.what());
  }
}

}  // namespace

torch::Tensor read_image(const fs::path& path, ImageReadMode mode, const ImageLimits& limits) {
  return with_name("sconce::vision::read_image: " + path.string(), [&] {
    const File file = open(path, "sconce::vision::read_image");
    return read_pixels(file.get(), mode, limits);
  });
}

torch::Tensor decode_image(const torch::Tensor& input, ImageReadMode mode,
                           const ImageLimits& limits) {
  TORCH_CHECK(
      input.defined() && input.dim() == 1 && input.scalar_type() == at::kByte && input.is_cpu(),
      "sconce::vision::decode_image: expected file contents, uint8 (n,) on the CPU, got ",
      input.toString(), " of shape ", input.defined() ? input.sizes() : at::IntArrayRef());
  return with_name("sconce::vision::decode_image", [&] {
    if (input.numel() == 0) throw ImageError("expected a PNG or JPEG image, got an empty buffer");
    const at::Tensor bytes = input.contiguous();
    const auto size = static_cast<size_t>(bytes.numel());
    const File file(::fmemopen(const_cast<void*>(bytes.const_data_ptr()), size, "rb"));
    if (!file) throw ImageError(std::strerror(errno));
    return read_pixels(file.get(), mode, limits);
  });
}

std::array<int64_t, 2> read_image_size(const fs::path& path, const ImageLimits& limits) {
  return with_name("sconce::vision::read_image_size: " + path.string(), [&] {
    const File file = open(path, "sconce::vision::read_image_size");
    const ImageHeader header = read_header(file.get(), limits);
    return std::array{header.height, header.width};
  });
}

void write_png(const torch::Tensor& input, const fs::path& path, int compression_level) {
  const std::string caller = "sconce::vision::write_png: " + path.string();
  TORCH_CHECK(input.defined() && input.dim() == 3 && input.scalar_type() == at::kByte &&
                  input.is_cpu() && input.size(0) >= 1 && input.size(0) <= 4 && input.numel() > 0,
              caller,
              ": expected a uint8 image (C, H, W) on the CPU with 1 to 4 channels and at least one "
              "pixel, got ",
              input.toString(), " of shape ", input.defined() ? input.sizes() : at::IntArrayRef());
  TORCH_CHECK(std::max(input.size(1), input.size(2)) < int64_t{1} << 31, caller,
              ": expected a height and width below 2^31, got shape ", input.sizes());
  TORCH_CHECK(compression_level >= 0 && compression_level <= 9, caller,
              ": expected compression_level to be from 0 to 9, got ", compression_level);
  const std::string bytes = with_name(
      caller, [&] { return encode_png(input.permute({1, 2, 0}).contiguous(), compression_level); });
  io::write_file(path, bytes, "sconce::vision::write_png");
}

}  // namespace sconce::vision
