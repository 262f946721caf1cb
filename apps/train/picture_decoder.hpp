#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace train {

/// The error of a file that is damaged or not a picture. `what()` is one line.
struct PictureError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Height and width of a picture in pixels.
struct PictureSize {
  int64_t height = 0;
  int64_t width = 0;
};

/// Reads one picture from an open file, first the header, then the pixels, and leaves the file
/// open. Its errors do not name the file.
class PictureDecoder {
 public:
  PictureDecoder() = default;
  PictureDecoder(const PictureDecoder&) = delete;
  PictureDecoder& operator=(const PictureDecoder&) = delete;
  virtual ~PictureDecoder() = default;

  /// Reads the header, and allocates no memory for the pixels.
  /// @throw PictureError
  virtual PictureSize read_header() = 0;

  /// Writes (height, width, 3) bytes, the RGB of each pixel, after `read_header`.
  /// @throw PictureError
  virtual void read_pixels(uint8_t* rgb) = 0;
};

/// Returns whether the program was built with libpng.
bool has_libpng();

/// Returns whether the program was built with libjpeg-turbo.
bool has_libjpeg();

/// Returns a decoder that uses libpng.
/// @throw std::runtime_error naming the package to install, if the program was built without it.
std::unique_ptr<PictureDecoder> make_png_decoder(std::FILE* file);

/// Returns a decoder that uses libjpeg-turbo.
/// @throw std::runtime_error naming the package to install, if the program was built without it.
std::unique_ptr<PictureDecoder> make_jpeg_decoder(std::FILE* file);

}  // namespace train
