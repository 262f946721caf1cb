#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "sconce/vision/image.hpp"

namespace sconce::vision {

/// The reason why an image cannot be read, as a single line without the file name.
struct ImageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown if the library for a format is missing. The message contains the name of the package to
/// install.
struct NoImageLibrary : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The properties of an image that are known before its pixels are read.
struct ImageHeader {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;  ///< 1: gray, 2: gray and alpha, 3: RGB, 4: RGB and alpha
};

/// Reads one image from an open file: first the header, and then the pixels. The file stays open.
class ImageDecoder {
 public:
  ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = delete;
  ImageDecoder& operator=(const ImageDecoder&) = delete;
  virtual ~ImageDecoder() = default;

  /// Reads the header without allocating memory for the pixels.
  /// @throw ImageError
  virtual ImageHeader read_header() = 0;

  /// Writes the pixels as (height, width, channels) bytes. Must be called after `read_header`. Gray
  /// images can be read as RGB, and the alpha channel can be omitted.
  /// @throw ImageError
  virtual void read_pixels(uint8_t* pixels, int64_t channels) = 0;
};

/// Reads the header of an image and checks the image's size.
/// @throw ImageError or NoImageLibrary
ImageHeader read_header(std::FILE* file, const ImageLimits& limits);

/// Reads an image as uint8 (C, H, W).
/// @throw ImageError or NoImageLibrary
at::Tensor read_pixels(std::FILE* file, ImageReadMode mode, const ImageLimits& limits);

}  // namespace sconce::vision
