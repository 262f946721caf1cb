#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace sconce::utils::tensorboard {

/// Returns a tensor's values on the CPU, detached from the graph.
/// @throw c10::Error with the prefix `caller` if the tensor has no values, or if it is sparse,
/// complex, or meta.
at::Tensor values_on_cpu(const std::string& caller, const at::Tensor& tensor);

/// Returns the uint8 pixels (H, W, C) of an image or an image grid, as described for
/// `SummaryWriter::add_image`.
/// @throw c10::Error with the prefix `caller` on failure.
at::Tensor image_pixels(const std::string& caller, const at::Tensor& image,
                        const std::string& dataformats);

}  // namespace sconce::utils::tensorboard
