#include "vision/jpeg.hpp"

#include <csetjmp>
#include <cstdio>
// The two headers below require <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <vector>

namespace sconce::vision {

namespace {

// If a libjpeg function fails, it exits through longjmp. Therefore, libjpeg callbacks and functions
// that call setjmp must not contain objects with destructors.
class JpegDecoder final : public ImageDecoder {
 public:
  JpegDecoder(std::FILE* file, int max_scans)
      : file_(file), max_scans_(max_scans), buffer_(1 << 16) {}

  ~JpegDecoder() override { jpeg_destroy_decompress(&jpeg_); }

  ImageHeader read_header() override {
    if (!try_header()) throw ImageError(message_);
    return {jpeg_.image_height, jpeg_.image_width, jpeg_.num_components == 1 ? 1 : 3};
  }

  void read_pixels(uint8_t* pixels, int64_t channels) override {
    const bool is_cmyk = jpeg_.num_components == 4;
    cmyk_row_.resize(is_cmyk ? 4 * size_t{jpeg_.image_width} : 0);
    jpeg_.out_color_space = is_cmyk ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    if (!try_pixels(pixels, static_cast<size_t>(channels))) throw ImageError(message_);
  }

 private:
  static JpegDecoder& of(void* jpeg) {
    return *static_cast<JpegDecoder*>(static_cast<j_common_ptr>(jpeg)->client_data);
  }

  [[noreturn]] void fail(const char* message) {
    std::snprintf(message_, sizeof message_, "damaged JPEG: %s", message);
    std::longjmp(jump_, 1);
  }

  [[noreturn]] static void fail_by_message(j_common_ptr jpeg) {
    char message[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, message);
    of(jpeg).fail(message);
  }

  // A warning about missing pixels is treated as an error. Other warnings are ignored.
  static void emit_message(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    switch (jpeg->err->msg_code) {
      case JWRN_HIT_MARKER:
      case JWRN_HUFF_BAD_CODE:
      case JWRN_JPEG_EOF:
      case JWRN_MUST_RESYNC:
        fail_by_message(jpeg);
      default:
        break;
    }
  }

  static void print_nothing(j_common_ptr) {}

  // A scan may consist of only a few bytes, but decoding it takes as long as reading every pixel.
  static void check_scans(j_common_ptr jpeg) {
    auto& self = of(jpeg);
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= self.max_scans_) return;
    std::snprintf(self.message_, sizeof message_,
                  "expected at most %d scans (ImageLimits::max_scans), got more", self.max_scans_);
    std::longjmp(self.jump_, 1);
  }

  static void begin_or_end_source(j_decompress_ptr) {}

  static boolean fill_buffer(j_decompress_ptr jpeg) {
    auto& self = of(jpeg);
    const size_t count = std::fread(self.buffer_.data(), 1, self.buffer_.size(), self.file_);
    if (count == 0) self.fail("the file is truncated");
    jpeg->src->next_input_byte = self.buffer_.data();
    jpeg->src->bytes_in_buffer = count;
    return TRUE;
  }

  static void skip_bytes(j_decompress_ptr jpeg, long count) {
    while (count > 0) {
      if (jpeg->src->bytes_in_buffer == 0) fill_buffer(jpeg);
      const size_t step = std::min(static_cast<size_t>(count), jpeg->src->bytes_in_buffer);
      jpeg->src->next_input_byte += step;
      jpeg->src->bytes_in_buffer -= step;
      count -= static_cast<long>(step);
    }
  }

  bool try_header() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = fail_by_message;
    errors_.emit_message = emit_message;
    errors_.output_message = print_nothing;
    jpeg_.client_data = this;
    if (setjmp(jump_)) return false;
    jpeg_create_decompress(&jpeg_);
    source_.init_source = source_.term_source = begin_or_end_source;
    source_.fill_input_buffer = fill_buffer;
    source_.skip_input_data = skip_bytes;
    source_.resync_to_restart = jpeg_resync_to_restart;
    jpeg_.src = &source_;
    progress_.progress_monitor = check_scans;
    jpeg_.progress = &progress_;
    jpeg_read_header(&jpeg_, TRUE);
    const int components = jpeg_.num_components;
    if (components != 1 && components != 3 && components != 4) {
      fail("expected 1, 3, or 4 color components");
    }
    return true;
  }

  bool try_pixels(uint8_t* pixels, size_t channels) {
    if (setjmp(jump_)) return false;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      uint8_t* to = pixels + channels * jpeg_.output_width * jpeg_.output_scanline;
      uint8_t* row = cmyk_row_.empty() ? to : cmyk_row_.data();
      jpeg_read_scanlines(&jpeg_, &row, 1);
      if (!cmyk_row_.empty()) convert_cmyk(to);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  // CMYK values are stored inverted, following Adobe's convention.
  void convert_cmyk(uint8_t* rgb) const {
    for (size_t i = 0; i < cmyk_row_.size(); i += 4) {
      const int light = cmyk_row_[i + 3];
      for (size_t c = 0; c < 3; ++c) {
        const int product = (255 - cmyk_row_[i + c]) * light + 128;
        *rgb++ = static_cast<uint8_t>(light - ((product >> 8) + product) / 256);
      }
    }
  }

  std::FILE* file_;
  int max_scans_;
  std::vector<uint8_t> buffer_;
  std::vector<uint8_t> cmyk_row_ = {};  // empty if the pixels are not CMYK
  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_source_mgr source_ = {};
  jpeg_progress_mgr progress_ = {};
  std::jmp_buf jump_ = {};
  char message_[256] = {};
};

}  // namespace

bool has_libjpeg() {
  return true;
}

std::unique_ptr<ImageDecoder> make_jpeg_decoder(std::FILE* file, int max_scans) {
  return std::make_unique<JpegDecoder>(file, max_scans);
}

}  // namespace sconce::vision
