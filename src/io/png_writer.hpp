#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sconce::io {

/// Returns the bytes of a PNG file with the pixels (H, W, C), uint8 and contiguous on the CPU:
/// gray, gray and alpha, RGB, or RGB and alpha. It needs zlib alone, which this layer has. With
/// libpng, as for `vision::write_png`, every program with reports would need libpng.
std::string png_file(const at::Tensor& pixels);

}  // namespace sconce::io
