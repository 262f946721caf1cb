#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "picture_decoder.hpp"

namespace train {

/// The largest number of pixels of a picture that is read. Their RGB takes a quarter of a GiB.
/// Pillow warns above this number.
inline constexpr int64_t max_picture_pixels = 89'478'485;

/// Reads the header of a PNG or JPEG file and checks the size. The content of the file, not its
/// name, decides which of the two it is.
/// @throw PictureError naming the file if it is neither, cannot be read, or is too large.
/// @throw std::runtime_error naming the file, and the package that the program was built without.
PictureSize read_picture_header(const std::filesystem::path& file,
                                int64_t max_pixels = max_picture_pixels);

/// Reads a PNG or JPEG file as uint8 (3, H, W) on the CPU, a view of (H, W, 3). Ignores a rotation
/// in the EXIF data. Python: `Image.open(file).convert('RGB')` of Pillow.
/// @throw PictureError as above, before memory is allocated, or if the file is damaged or cut off.
/// @throw std::runtime_error as above.
at::Tensor read_picture(const std::filesystem::path& file, int64_t max_pixels = max_picture_pixels);

/// Converts a picture from RGB (3, H, W) to grey (1, H, W), both uint8, with ITU-R 601's weights.
/// Python: `image.convert('L')` of Pillow.
at::Tensor rgb_to_grey(const at::Tensor& picture);

/// Resizes a uint8 picture (C, H, W) to (C, size[0], size[1]), bilinear and antialiased, without
/// keeping its aspect ratio. Python: `resize(picture, size)` of torchvision's `v2.functional`.
at::Tensor resize_picture(const at::Tensor& picture, at::IntArrayRef size);

}  // namespace train
