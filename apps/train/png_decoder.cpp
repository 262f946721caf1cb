#include <png.h>

#include <csetjmp>
#include <new>

#include "picture_decoder.hpp"

namespace train {

namespace {

// If a function of libpng fails, it is left by longjmp. Therefore the functions that call setjmp,
// and those that libpng calls, have no object with a destructor.
class PngDecoder final : public PictureDecoder {
 public:
  explicit PngDecoder(std::FILE* file) : file_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, ignore_warning);
    info_ = png_ == nullptr ? nullptr : png_create_info_struct(png_);
    if (info_ != nullptr) return;
    png_destroy_read_struct(&png_, nullptr, nullptr);
    throw std::bad_alloc();
  }

  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  PictureSize read_header() override {
    if (!try_header()) throw PictureError(message_);
    return {height_, width_};
  }

  void read_pixels(uint8_t* rgb) override {
    if (!try_pixels(rgb)) throw PictureError(message_);
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
    if (std::fread(to, 1, count, file) != count) png_error(png, "the file ends too early");
  }

  bool try_header() {
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, file_, read_bytes);
    // The caller checks the size. Chunks such as texts and color profiles are skipped.
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    width_ = png_get_image_width(png_, info_);
    height_ = png_get_image_height(png_, info_);
    return true;
  }

  bool try_pixels(uint8_t* rgb) {
    if (setjmp(png_jmpbuf(png_))) return false;
    const auto color = png_get_color_type(png_, info_);
    const bool is_grey_16 = color == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) == 16;
    if (!is_grey_16) {
      png_set_strip_16(png_);
      if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
      if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
      png_set_gray_to_rgb(png_);
      png_set_strip_alpha(png_);
    }
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);  // allocates memory for some rows
    for (int pass = 0; pass < passes; ++pass) {
      for (int64_t y = 0; y < height_; ++y) png_read_row(png_, rgb + y * 3 * width_, nullptr);
    }
    png_read_end(png_, nullptr);
    if (is_grey_16) {
      for (int64_t y = 0; y < height_; ++y) narrow_grey(rgb + y * 3 * width_);
    }
    return true;
  }

  // Converts a row of 16-bit grey to RGB in place, from its end. As in Pillow, values above 255
  // become 255, whereas 16-bit colors keep their upper byte.
  void narrow_grey(uint8_t* row) const {
    for (int64_t x = width_ - 1; x >= 0; --x) {
      const uint8_t grey = row[2 * x] == 0 ? row[2 * x + 1] : 255;
      row[3 * x] = row[3 * x + 1] = row[3 * x + 2] = grey;
    }
  }

  std::FILE* file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int64_t height_ = 0;
  int64_t width_ = 0;
  char message_[256] = {};
};

}  // namespace

bool has_libpng() {
  return true;
}

std::unique_ptr<PictureDecoder> make_png_decoder(std::FILE* file) {
  return std::make_unique<PngDecoder>(file);
}

}  // namespace train
