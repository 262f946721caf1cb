#pragma once

#include <cstdio>
#include <memory>

#include "vision/image_decoder.hpp"

namespace sconce::vision {

/// Returns whether sconce was built with libjpeg-turbo.
bool has_libjpeg();

/// Creates a decoder that rejects images with more than `max_scans` scans.
/// @throw NoImageLibrary if sconce was built without libjpeg-turbo.
std::unique_ptr<ImageDecoder> make_jpeg_decoder(std::FILE* file, int max_scans);

}  // namespace sconce::vision
