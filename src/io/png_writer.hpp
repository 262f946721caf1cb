#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sconce::io {

/// Returns the bytes of a PNG file. The pixels are uint8, (H, W, C), and contiguous on the CPU. C
/// selects gray, gray and alpha, RGB, or RGB and alpha. This function requires only zlib, which
/// this layer already uses. If it used libpng, like `vision::write_png`, every program with reports
/// would need libpng.
std::string png_file(const at::Tensor& pixels);

}  // namespace sconce::io
