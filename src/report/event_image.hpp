#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sconce::utils::tensorboard {

/// Returns a tensor's values on the CPU without its graph.
/// @throw c10::Error that begins with `who` if it has none, is sparse, complex or meta.
at::Tensor values_on_cpu(const std::string& who, const at::Tensor& tensor);

/// Returns the pixels of an image, uint8 (H, W, C), or of a grid of images, as
/// `SummaryWriter::add_image` describes.
/// @throw c10::Error that begins with `who`.
at::Tensor image_pixels(const std::string& who, const at::Tensor& image,
                        const std::string& dataformats);

}  // namespace sconce::utils::tensorboard
