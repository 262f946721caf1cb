#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "sconce/vision/image.hpp"

namespace sconce::vision {

/// Why a picture cannot be read, in one line that does not name its file.
struct ImageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// That the library for a format is missing, with the package to install.
struct NoImageLibrary : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What is known of a picture before its pixels are read.
struct ImageHeader {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1: gray, 2: gray and alpha, 3: RGB, 4: RGB and alpha
};

/// Reads one picture from an open file, first the header, then the pixels, and leaves the file
/// open.
class ImageDecoder {
 public:
  ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;
  virtual ~ImageDecoder() = default;

  /// Reads the header, and allocates no memory for the pixels.
  /// @throw ImageError
  virtual ImageHeader read_header() = 0;

  /// Writes (height, width, channels) bytes, after `read_header`. Gray can be read as RGB, and
  /// alpha be left out.
  /// @throw ImageError
  virtual void read_pixels(uint8_t* pixels, int64_t channels) = 0;
};

/// Reads the header of a picture and checks its size.
/// @throw ImageError or NoImageLibrary
ImageHeader read_header(std::FILE* file, const ImageLimits& limits);

/// Reads a picture as uint8 (C, H, W).
/// @throw ImageError or NoImageLibrary
at::Tensor read_pixels(std::FILE* file, ImageReadMode mode, const ImageLimits& limits);

}  // namespace sconce::vision
