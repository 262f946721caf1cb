#include "vision/png.hpp"

#include <png.h>

#include <csetjmp>
#include <new>
#include <utility>

namespace sconce::vision {

namespace {

// If a libpng function fails, it exits through longjmp. Therefore, libpng callbacks and functions
// that call setjmp must not contain objects with destructors.
class PngDecoder final : public ImageDecoder {
 public:
  explicit PngDecoder(std::FILE* file) : file_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ != nullptr) return;
    png_destroy_read_struct(&png_, nullptr, nullptr);
    throw std::bad_alloc();
  }

  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  ImageHeader read_header() override {
    if (!try_header()) throw ImageError(message_);
    return {height_, width_, channels_};
  }

  void read_pixels(uint8_t* pixels, int64_t channels) override {
    if (!try_pixels(pixels, channels)) throw ImageError(message_);
  }

 private:
  static void fail(png_structp png, const char* message) {
    auto& self = *static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::snprintf(self.message_, sizeof message_, "damaged PNG: %s", message);
    png_longjmp(png, 1);
  }

  static void ignore_warning(png_structp, const char*) {}

  static void read_bytes(png_structp png, png_bytep to, size_t count) {
    auto* file = static_cast<std::FILE*>(png_get_io_ptr(png));
    if (std::fread(to, 1, count, file) != count) png_error(png, "the file is truncated");
  }

  bool try_header() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, file_, read_bytes);
    // The caller checks the size of the image. Chunks such as text and color profiles are skipped.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    width_ = png_get_image_width(png_, info_);
    height_ = png_get_image_height(png_, info_);
    const auto color = png_get_color_type(png_, info_);
    const bool is_transparent =
        (color & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    channels_ = ((color & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1) + (is_transparent ? 1 : 0);
    return true;
  }

  bool try_pixels(uint8_t* pixels, int64_t channels) {
    if (setjmp(png_jmpbuf(png_))) return false;
    const auto color = png_get_color_type(png_, info_);
    if (color == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) == 16) {
      png_set_read_user_transform_fn(png_, narrow);
      png_set_user_transform_info(png_, nullptr, 8, 0);
    } else {
      png_set_strip_16(png_);
    }
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if (channels >= 3) png_set_gray_to_rgb(png_);
    if (channels % 2 == 0) {
      png_set_tRNS_to_alpha(png_);
    } else {
      png_set_strip_alpha(png_);
    }
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);  // allocates memory for some rows
    for (int pass = 0; pass < passes; ++pass) {
      for (int64_t y = 0; y < height_; ++y) {
        png_read_row(png_, pixels + y * channels * width_, nullptr);
      }
    }
    png_read_end(png_, nullptr);
    return true;
  }

  // Converts a row of 16-bit gray values to 8 bits in place. As in Pillow, values above 255 become
  // 255, whereas 16-bit colors keep their upper byte.
  static void narrow(png_structp, png_row_infop row, png_bytep bytes) {
    for (size_t i = 0; i < size_t{row->width} * row->channels; ++i) {
      bytes[i] = bytes[2 * i] == 0 ? bytes[2 * i + 1] : png_byte{255};
    }
  }

  std::FILE* file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int64_t height_ = 0;
  int64_t width_ = 0;
  int64_t channels_ = 0;
  char message_[256] = {};
};

// As in the class above, libpng functions may exit through longjmp.
class PngEncoder {
 public:
  PngEncoder() {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ != nullptr) return;
    png_destroy_write_struct(&png_, nullptr);
    throw std::bad_alloc();
  }

  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;
  ~PngEncoder() { png_destroy_write_struct(&png_, &info_); }

  std::string encode(const at::Tensor& pixels, int compression_level) {
    if (!try_encode(pixels.const_data_ptr<uint8_t>(), static_cast<uint32_t>(pixels.size(0)),
                    static_cast<uint32_t>(pixels.size(1)), static_cast<int>(pixels.size(2)),
                    compression_level)) {
      throw ImageError(message_);
    }
    return std::move(bytes_);
  }

 private:
  static void fail(png_structp png, const char* message) {
    auto& self = *static_cast<PngEncoder*>(png_get_error_ptr(png));
    std::snprintf(self.message_, sizeof message_, "cannot encode it: %s", message);
    png_longjmp(png, 1);
  }

  static void ignore_warning(png_structp, const char*) {}

  bool append(const png_byte* bytes, size_t count) {
    try {
      bytes_.append(reinterpret_cast<const char*>(bytes), count);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  static void write_bytes(png_structp png, png_bytep bytes, size_t count) {
    auto& self = *static_cast<PngEncoder*>(png_get_io_ptr(png));
    if (!self.append(bytes, count)) png_error(png, "out of memory");
  }

  static void flush(png_structp) {}

  bool try_encode(const uint8_t* pixels, uint32_t height, uint32_t width, int channels,
                  int compression_level) {
    constexpr int color_types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                   PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_write_fn(png_, this, write_bytes, flush);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_compression_level(png_, compression_level);
    png_set_IHDR(png_, info_, width, height, 8, color_types[channels - 1], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    const size_t row = size_t{width} * static_cast<size_t>(channels);
    for (uint32_t y = 0; y < height; ++y) png_write_row(png_, pixels + y * row);
    png_write_end(png_, nullptr);
    return true;
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::string bytes_ = {};
  char message_[256] = {};
};

}  // namespace

bool has_libpng() {
  return true;
}

std::unique_ptr<ImageDecoder> make_png_decoder(std::FILE* file) {
  return std::make_unique<PngDecoder>(file);
}

std::string encode_png(const at::Tensor& pixels, int compression_level) {
  return PngEncoder().encode(pixels, compression_level);
}

}  // namespace sconce::vision
