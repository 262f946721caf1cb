#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "vision/image_decoder.hpp"

namespace sconce::vision {

/// Returns whether sconce was built with libpng.
bool has_libpng();

/// @throw NoImageLibrary if sconce was built without libpng.
std::unique_ptr<ImageDecoder> make_png_decoder(std::FILE* file);

/// Returns the bytes of a PNG file. The pixels are uint8, (H, W, C), and contiguous.
/// @throw NoImageLibrary if sconce was built without libpng.
std::string encode_png(const at::Tensor& pixels, int compression_level);

}  // namespace sconce::vision
