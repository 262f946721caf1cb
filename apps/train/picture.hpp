#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "picture_decoder.hpp"

namespace train {

/// The most pixels of a picture that is read: their RGB takes a quarter of a GiB. Pillow warns from
/// here on.
inline constexpr int64_t max_picture_pixels = 89'478'485;

/// Reads the header of a PNG or JPEG file, which the file's content tells from others, not its
/// name, and checks the size.
/// @throw PictureError naming the file if it is none, cannot be read, or is too large.
/// @throw std::runtime_error naming the file and a package if the program was built without it.
PictureSize read_picture_header(const std::filesystem::path& file,
                                int64_t max_pixels = max_picture_pixels);

/// Reads a PNG or JPEG file: uint8 (3, H, W) on the CPU, a view of (H, W, 3). What its EXIF data
/// says of a rotation is passed over. Python: `Image.open(file).convert('RGB')` of Pillow.
/// @throw PictureError as above, before memory is taken; if the file is damaged or truncated.
/// @throw std::runtime_error as above
at::Tensor read_picture(const std::filesystem::path& file, int64_t max_pixels = max_picture_pixels);

/// Makes a grey picture (1, H, W) of one in RGB (3, H, W), both uint8, with ITU-R 601's weights.
/// Python: `image.convert('L')` of Pillow.
at::Tensor rgb_to_grey(const at::Tensor& picture);

/// Resizes a uint8 picture (C, H, W) to (C, size, size) whatever its form, bilinear and
/// antialiased. Python: `torchvision.transforms.v2.functional.resize(picture, [size, size])`.
at::Tensor resize_picture(const at::Tensor& picture, at::IntArrayRef size);

}  // namespace train
