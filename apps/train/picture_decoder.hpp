#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace train {

/// A file that is no picture, or a damaged one. `what()` is one line.
struct PictureError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Height and width of a picture in pixels.
struct PictureSize {
  int64_t height = 0;
  int64_t width = 0;
};

/// Reads one picture from an open file, which it leaves open: first the header, then the pixels.
/// Its errors do not name the file, whose name it does not know.
class PictureDecoder {
 public:
  PictureDecoder() = default;
  PictureDecoder(const PictureDecoder&) = delete;
  PictureDecoder& operator=(const PictureDecoder&) = delete;
  virtual ~PictureDecoder() = default;

  /// Reads to where the pixels begin, and takes no memory for them.
  /// @throw PictureError
  virtual PictureSize read_header() = 0;

  /// Writes (height, width, 3) bytes, the RGB of each pixel, after `read_header`.
  /// @throw PictureError
  virtual void read_pixels(uint8_t* rgb) = 0;
};

/// Whether the program was built with libpng.
bool has_libpng();

/// Whether the program was built with libjpeg-turbo.
bool has_libjpeg();

/// Returns a decoder by libpng.
/// @throw std::runtime_error if the program was built without, naming the package to install.
std::unique_ptr<PictureDecoder> make_png_decoder(std::FILE* file);

/// Returns a decoder by libjpeg-turbo.
/// @throw std::runtime_error if the program was built without, naming the package to install.
std::unique_ptr<PictureDecoder> make_jpeg_decoder(std::FILE* file);

}  // namespace train
